"""The soft lookup of the web page computes the numbers of `seqloom lookup`."""

import pytest
from playwright.sync_api import Browser, Page, expect

from seqloom.analysis.lookup import KEYS, VALUES, LookupMethod, LookupTable, look_up
from support.browsing import Visitor, visit
from support.server_process import ServerProcess

pytestmark = pytest.mark.slow

LOOK_UP = """async ([table, method]) => {
  const { lookUp } = await import("/static/shared/lookup.js");
  return lookUp(table, method);
}"""


def shown_result(page: Page) -> float:
    return float(page.locator("[data-result]").get_attribute("data-result") or "nan")


@pytest.mark.parametrize("method", ["exact", "nearest", "soft"])
@pytest.mark.parametrize(
    "table",
    [
        LookupTable(),
        LookupTable(query=(3.0, 2.0), gamma=0.25, temperature=4),
        LookupTable(query=(0.5, 4.5), gamma=4, temperature=0.125),
        LookupTable(query=(2.5, 2.5), score="dot", temperature=8),
        LookupTable(query=(1.0, 1.0), score="dot"),
    ],
)
def test_the_page_computes_the_numbers_of_python(
    visitor: Visitor, method: LookupMethod, table: LookupTable
) -> None:
    page = visitor.open("#/inside?of=lookup")
    values = {**vars(table), "values": [value for (value,) in table.values]}
    found = page.evaluate(LOOK_UP, [values, method])
    expected = look_up(table, method)
    assert found["scores"] == pytest.approx(expected.scores, rel=1e-9, abs=1e-12)
    assert found["weights"] == pytest.approx(expected.weights, rel=1e-9, abs=1e-12)
    assert found["result"] == pytest.approx(expected.result[0])
    assert found["queryGradient"] == pytest.approx(expected.query_gradient[0], abs=1e-9)
    for gradient, expected_gradient in zip(
        found["keyGradients"], expected.key_gradients[0], strict=True
    ):
        assert gradient == pytest.approx(expected_gradient, abs=1e-9)


def test_sliders_and_buttons_change_the_lookup(visitor: Visitor) -> None:
    page = visitor.open("#/inside?of=lookup")
    assert shown_result(page) == pytest.approx(look_up(LookupTable(), "soft").result[0])
    page.get_by_label("Query, horizontal").fill("3")
    page.get_by_label("γ", exact=True).fill("-1")
    page.get_by_label("Temperature").fill("2")
    changed = LookupTable(query=(3.0, 2.5), gamma=0.5, temperature=4)
    assert shown_result(page) == pytest.approx(look_up(changed, "soft").result[0])
    page.get_by_text("q · k", exact=True).click()
    dot = LookupTable(query=(3.0, 2.5), score="dot", temperature=4)
    assert shown_result(page) == pytest.approx(look_up(dot, "soft").result[0])
    expect(page.get_by_label("γ", exact=True)).to_be_hidden()
    page.get_by_text("Nearest").click()
    assert shown_result(page) == 20
    page.get_by_text("Exact").click()
    assert shown_result(page) == 0
    expect(page.get_by_label("Temperature")).to_be_hidden()
    page.get_by_label("Query, vertical").fill("2")
    assert shown_result(page) == 20, "the query equals a key"
    visitor.load("#" + page.url.partition("#")[2])
    assert shown_result(page) == 20, "the link contains the settings"


def test_the_query_can_be_dragged_and_moved_with_the_keyboard(visitor: Visitor) -> None:
    page = visitor.load("#/inside?of=lookup&method=exact")
    box = page.locator(".lookup-plot").bounding_box()
    assert box is not None
    x, y = KEYS[3]
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * x / 5, box["y"] + box["height"] * (1 - y / 5))
    page.mouse.up()
    assert shown_result(page) == VALUES[3][0]
    slider = page.get_by_label("Query, horizontal")
    assert slider.input_value() == "4"
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.input_value() == "4.05"
    assert shown_result(page) == 0


def test_wrong_settings_in_a_link_are_replaced_by_the_defaults(visitor: Visitor) -> None:
    page = visitor.open("#/inside?of=lookup&method=x&match=y&x=no&gamma=-1&temperature=0")
    assert shown_result(page) == pytest.approx(look_up(LookupTable(), "soft").result[0])


def test_the_lookup_is_accessible_in_both_themes(visitor: Visitor) -> None:
    page = visitor.open("#/inside?of=lookup")
    for theme in ("Light", "Dark"):
        page.get_by_role("button", name=theme).click()
        assert not visitor.axe(), theme
    page.get_by_role("button", name="System").click()


def test_the_lookup_fits_a_small_screen_and_needs_no_run(
    browser: Browser, server: ServerProcess
) -> None:
    context, visitor = visit(browser, server, viewport={"width": 360, "height": 740})
    served = server.get("/api/runs").json()
    served["runs"] = [run for run in served["runs"] if run["kind"] == "forecast"]
    visitor.replace_answers("**/api/runs", lambda route: route.fulfill(json=served))
    page = visitor.load("#/inside")
    page.get_by_text("Soft lookup").click()
    assert shown_result(page) == pytest.approx(look_up(LookupTable(), "soft").result[0])
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    visitor.check()
    context.close()
