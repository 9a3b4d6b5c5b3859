// Before the first paint: the theme the person chose last time, if any.
try {
  const theme = localStorage.getItem("gnnxml.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is closed: the system's theme is as good a choice.
}
