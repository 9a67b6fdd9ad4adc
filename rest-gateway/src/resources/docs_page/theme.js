// The theme that the reader chose, applied before the page is shown.

const { style } = document.documentElement;
style.colorScheme = localStorage.getItem("theme") ?? "";
addEventListener("DOMContentLoaded", () => {
  const select = document.getElementById("theme");
  if (!select) return;
  select.closest("[hidden]").hidden = false;
  select.value = style.colorScheme;
  select.addEventListener("change", () => {
    style.colorScheme = select.value;
    localStorage.setItem("theme", select.value);
  });
});
