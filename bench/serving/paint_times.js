// Records in the browser when an element is first on the screen. Polling from outside would add about a third of
// a second. SELECTORS is replaced by a list.
window.painted = {};
new MutationObserver(() => {
  for (const selector of SELECTORS) {
    if (selector in painted || !document.querySelector(selector)) continue;
    painted[selector] = null;
    // The element is on the screen one frame after the one in which it is drawn.
    requestAnimationFrame(() => requestAnimationFrame((now) => {
      painted[selector] = performance.timeOrigin + now;
    }));
  }
}).observe(document, { childList: true, subtree: true });
new PerformanceObserver((list) => {
  for (const { name, startTime } of list.getEntries()) painted[name] = performance.timeOrigin + startTime;
}).observe({ type: "paint", buffered: true });
