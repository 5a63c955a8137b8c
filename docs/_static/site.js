// A wide code block or table scrolls. Give it keyboard focus, so that the arrow keys scroll it.
function focusScrollingParts() {
  for (const part of document.querySelectorAll("div.highlight pre, .table-wrapper")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
}

window.addEventListener("load", focusScrollingParts);
window.addEventListener("resize", focusScrollingParts);
