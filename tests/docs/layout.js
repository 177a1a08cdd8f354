// Lays every page of the list out at each width, looks at its colours in each scheme, without its scripts, and writes what is wrong as JSON.
const found = [];
const LANES = 8; // frames at a time
const { pages, widths, schemes } = JSON.parse(document.querySelector("#task").textContent);
const luminance = ([r, g, b]) =>
  [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
const pen = canvas.getContext("2d", { willReadFrequently: true });
const cache = new Map();
const rgba = (colour) => {
  if (!cache.has(colour)) {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    cache.set(colour, [r, g, b, a / 255]);
  }
  return cache.get(colour);
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
const ground = (element, view) => {
  const grounds = [];
  for (let e = element; e; e = e.parentElement) grounds.push(rgba(view.getComputedStyle(e).backgroundColor));
  return grounds.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
};
const contrast = (element, view) => {
  const back = ground(element, view);
  const [light, dark] = [luminance(over(rgba(view.getComputedStyle(element).color), back)), luminance(back)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
};
const TEXTS = "p, li, td, th, a, code, h1, h2, h3, span".split(", ").map((tag) => `article ${tag}`).join(", ");
const faint = (page, view) => {
  const ratios = new Map(); // of the first element of each kind
  for (const element of page.querySelectorAll(`${TEXTS}, .md-nav a, .md-header span`)) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const kind = `${element.parentElement.tagName.toLowerCase()} ${element.tagName.toLowerCase()}.${element.className}`;
    if (!own || ratios.has(kind) || !element.getBoundingClientRect().width || element.matches(".headerlink")) continue;
    ratios.set(kind, contrast(element, view));
  }
  return [...ratios].filter(([, ratio]) => ratio < 4.5).map(([kind, ratio]) => `${kind} ${ratio.toFixed(2)}`);
};
const SCROLLS = "pre, table, .highlight, svg"; // within themselves
const wide = (page, width) =>
  [...page.body.querySelectorAll("*")]
    .filter((e) => e.getBoundingClientRect().right > width + 1 && !e.parentElement.closest(SCROLLS))
    .slice(0, 3).map((e) => `${e.closest("article")?.id ?? ""} ${e.tagName.toLowerCase()}: ${e.textContent.trim().slice(0, 60)}`);
const judge = (frame, url) => {
  const [page, view] = [frame.contentDocument, frame.contentWindow];
  page.head.append(Object.assign(page.createElement("style"), { textContent: "* { transition: none !important }" }));
  const name = url.split("/").slice(-2).join("/");
  for (const width of widths) {
    frame.style.width = `${width}px`;
    const root = page.documentElement;
    if (root.scrollWidth > root.clientWidth) found.push(`${name} ${width}: scrolls to ${root.scrollWidth}, ${wide(page, width).join(" | ")}`);
  }
  for (const scheme of schemes) {
    page.body.setAttribute("data-md-color-scheme", scheme);
    const dark = luminance(ground(page.body, view)) < 0.2;
    if (dark !== (scheme === "slate")) found.push(`${name} ${scheme}: its background is ${dark ? "dark" : "light"}`);
    found.push(...faint(page, view).map((text) => `${name} ${scheme}: faint ${text}`));
  }
};
// The load event of this page, after which Chromium prints it, waits for the frames that a frame's own load event adds.
const rest = [...pages];
let open = 0;
const lay = (url) => {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-same-origin"); // its scripts do not run
  frame.style = `border:0;width:${widths[0]}px;height:900px`;
  frame.addEventListener("load", () => {
    judge(frame, url);
    open--;
    next();
    frame.remove();
  });
  open++;
  frame.src = url;
  document.body.append(frame);
};
const next = () => {
  if (rest.length) lay(rest.shift());
  else if (!open) document.querySelector("#found").textContent = JSON.stringify(found.sort());
};
for (let lane = 0; lane < LANES; lane++) next();
