// Before anything is painted: the colours that were chosen, or those of the system.
try {
  const chosen = localStorage.getItem("seqloom-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Nothing may be stored here; the system's colours will do.
}
