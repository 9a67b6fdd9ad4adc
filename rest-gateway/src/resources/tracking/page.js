// Looks for a change while the page is seen, and shows it in place. Without this script, the page loads itself again.
const main = document.querySelector("main");
let timer;

async function refresh() {
  try {
    // The browser asks with the ETag that it has.
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (response.ok || response.status === 404 || response.status === 410) {
      show(new DOMParser().parseFromString(await response.text(), "text/html"));
    }
  } catch {
    // Offline: the next turn tries again.
  }
  schedule();
}

function show(page) {
  const found = page.querySelector("main");
  if (found && found.innerHTML !== main.innerHTML) {
    document.title = page.title;
    main.dataset.seconds = found.dataset.seconds;
    main.className = found.className;
    main.replaceChildren(...found.childNodes);
  }
}

function schedule() {
  clearTimeout(timer);
  const seconds = Number(main.dataset.seconds);
  if (seconds && !document.hidden) timer = setTimeout(refresh, 1000 * seconds);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !main.dataset.seconds) schedule();
  else refresh();
});
schedule();
