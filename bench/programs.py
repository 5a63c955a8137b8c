"""Programs that measure something other than trained models: speed, latency, memory, exports."""

from typing import NamedTuple


class Program(NamedTuple):
    """A program of `python -m bench NAME`.

    module: has `add_options(parser)`; `measure(options)`, which yields the results so far, each of
            them to be stored; `table(results)`, which renders them as Markdown; and maybe `draw()`,
            which draws a picture of the stored results
    """

    module: str
    help: str


PROGRAMS = {
    "training-cpu": Program("bench.comparison.training", "training, compared with other toolkits"),
    "decoding-cpu": Program("bench.comparison.decoding", "decoding, compared with other toolkits"),
    "latency": Program("bench.latency", "latency of single sentences for each engine"),
    "engine-cpu": Program("bench.engine_cpu", "the CTranslate2 engine, CTranslate2 alone, torch"),
    "training-gpu": Program("bench.gpu.training", "training on a GPU, compared with Marian"),
    "decoding-gpu": Program("bench.gpu.decoding", "decoding on a GPU, compared with Marian"),
    "file-gpu": Program("bench.gpu.files", "translating a file on a GPU in several portions"),
    "parallel-gpu": Program("bench.gpu.parallel", "training through DDP and FSDP on one GPU"),
    "scaling": Program("bench.scaling.program", "memory and time as the work grows; start-up"),
    "prepare": Program("bench.prepare", "preparing data: CPU time, memory, equal bytes"),
    "serving": Program("bench.serving.service", "latency and throughput of the HTTP server"),
    "serving-workers": Program("bench.serving.workers", "throughput of several server processes"),
    "page-speed": Program("bench.serving.page", "response times of the web page in a browser"),
    "batch-translation": Program("bench.batch_translation", "worker processes and Ray"),
    "beam-widths": Program("bench.beam_widths", "log-probability and BLEU by beam width"),
    "lab": Program("bench.lab", "docs/lab.md from the reports of `seqloom lab`"),
    "export": Program("bench.export", "outputs of a run and of its exported forms"),
}
