"""Models: encoders and decoders assembled from the layers in `seqloom.nn`."""

from seqloom.models.build import build_decoder, build_encoder, build_model
from seqloom.models.compile import compile_model
from seqloom.models.ensemble import build_ensemble
from seqloom.models.images import ConvolutionEncoder, ImageEncoder, PatchEncoder
from seqloom.models.interface import (
    Decoder,
    DecoderModule,
    DecoderOutput,
    Encoder,
    EncoderModule,
    Memory,
    NoRows,
    State,
    StaticDecoder,
    Step,
)
from seqloom.models.labels import LabelDecoder
from seqloom.models.recurrent import RecurrentDecoder, RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder

__all__ = [
    "ConvolutionEncoder",
    "Decoder",
    "DecoderModule",
    "DecoderOutput",
    "Encoder",
    "EncoderModule",
    "ImageEncoder",
    "LabelDecoder",
    "Memory",
    "Model",
    "NoRows",
    "PatchEncoder",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "State",
    "StaticDecoder",
    "Step",
    "TransformerDecoder",
    "TransformerEncoder",
    "build_decoder",
    "build_encoder",
    "build_ensemble",
    "build_model",
    "compile_model",
]
