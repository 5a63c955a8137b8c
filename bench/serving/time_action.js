// Clicks on an element, or enters a text into it. Resolves to the milliseconds until an element that matches the
// selector is on the screen.
(element, [text, selector]) => new Promise((resolve, reject) => {
  const started = performance.now();
  const observer = new MutationObserver(() => {
    if (!document.querySelector(selector)) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - started)));
  });
  observer.observe(document, { childList: true, subtree: true });
  setTimeout(() => reject(new Error(`${selector} did not appear within 30 seconds`)), 30000);
  if (text === null) element.click();
  else {
    element.value = text;
    element.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }
})
