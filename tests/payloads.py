"""What people type who wish that a page would run it."""

from itertools import cycle, islice

CALL = "window.seen.ran++"
BASIC = (
    f"<script>{CALL}</script>",
    f'"><script>{CALL}</script>',
    f"</textarea><script>{CALL}</script>",
    f"</title><script>{CALL}</script>",
    f"<img src=x onerror={CALL}>",
    f"'\"><img src=x onerror={CALL}>",
    f"<svg onload={CALL}>",
    f"<svg><script>{CALL}</script></svg>",
    f"<svg><animate onbegin={CALL} attributeName=x dur=1s>",
    f"<body onload={CALL}>",
    f"<input autofocus onfocus={CALL}>",
    f"<details open ontoggle={CALL}>",
    f"<iframe srcdoc='<script>parent.{CALL}</script>'>",
    f"<iframe src=javascript:parent.{CALL}>",
    f"<a href=javascript:{CALL}>here</a>",
    f"javascript:{CALL}",
    f"<math><mtext></mtext><img src=x onerror={CALL}></math>",
    "<style>@import '//elsewhere.test/x.css';</style><p style=background:url(//elsewhere.test/y)>",
    "<link rel=stylesheet href=//elsewhere.test/z.css><base href=//elsewhere.test/>",
    f"<object data=javascript:{CALL}></object><embed src=javascript:{CALL}>",
    f"<form action=javascript:{CALL}><button autofocus>press</button></form>",
    f"${{{CALL}}} {{{{constructor.constructor('{CALL}')()}}}}",
    f"\u2028<script>{CALL}</script>\u2029\u202e\ufeff",
    f"%3Cscript%3E{CALL}%3C/script%3E &lt;script&gt;{CALL}&lt;/script&gt;",
)
DISGUISES = (
    str,
    str.upper,
    lambda text: text.replace("<", "<\t").replace("=", " = "),
    lambda text: text.replace("script", "scr\0ipt").replace("on", "oN"),
    lambda text: f"{text}]]>--><!--{text}",
)


def payloads(count: int) -> list[str]:
    """So many of them, the plain ones first."""
    every = (disguise(text) for disguise in DISGUISES for text in BASIC)
    return list(islice(cycle(every), count))
