// Applies the stored theme before the first paint. Without one, the system's theme applies.
try {
  const theme = localStorage.getItem("seqloom-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is disabled.
}
