// Loads each page with its scripts, and writes diagrams whose text is small or faint, or that are cut off, as JSON.
const { pages, widths, schemes, smallest } = JSON.parse(document.querySelector("#task").textContent);
const found = [];
const parts = (colour) => {
  const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
  return colour.startsWith("color(") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
const luminance = (colour) =>
  colour.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (colours) => {
  const [light, dark] = colours.map(luminance).sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
};
const holds = (outer, inner) =>
  outer.left <= inner.left + 1 && outer.right >= inner.right - 1 && outer.top <= inner.top + 1 && outer.bottom >= inner.bottom - 1;
const judge = (frame, url) => {
  const [page, view] = [frame.contentDocument, frame.contentWindow];
  page.head.append(Object.assign(page.createElement("style"), { textContent: "* { transition: none !important }" }));
  const style = (element) => view.getComputedStyle(element);
  const diagrams = [...page.querySelectorAll("div.mermaid")].map((host) => [host, host.drawn.querySelector("svg")]);
  for (const width of widths) {
    frame.style.width = `${width}px`;
    const root = page.documentElement;
    if (root.scrollWidth > root.clientWidth) found.push(`${url} ${width}: the page scrolls to ${root.scrollWidth}`);
    diagrams.forEach(([host, svg], number) => {
      const size = svg.getBoundingClientRect();
      const start = host.getBoundingClientRect().left - host.scrollLeft;
      if (size.left < start - 1 || size.right > start + host.scrollWidth + 1) found.push(`${url} ${width} ${number}: cut off`);
      const scale = size.width / (svg.viewBox.baseVal.width || size.width);
      const texts = [...svg.querySelectorAll("span, p, text")].filter((e) => e.textContent.trim());
      const least = Math.min(...texts.map((e) => parseFloat(style(e).fontSize) * scale));
      if (!(least >= smallest)) found.push(`${url} ${width} ${number}: text of ${least.toFixed(1)} px`);
    });
  }
  for (const scheme of schemes) {
    page.body.setAttribute("data-md-color-scheme", scheme);
    const ground = over(parts(style(page.body).backgroundColor), [255, 255, 255]);
    diagrams.forEach(([, svg], number) => {
      const shapes = [...svg.querySelectorAll(".cluster rect, .node rect, .node path, .node polygon, .node circle")];
      for (const label of svg.querySelectorAll("foreignObject span, text")) {
        if (!label.textContent.trim()) continue;
        const behind = shapes.filter((shape) => holds(shape.getBoundingClientRect(), label.getBoundingClientRect()));
        const own = label.closest("foreignObject") ? [style(label).backgroundColor] : [];
        const back = [...behind.map((shape) => style(shape).fill), ...own]
          .filter((colour) => colour !== "none").reduce((below, colour) => over(parts(colour), below), ground);
        const ratio = contrast([over(parts(style(label).color), back), back]);
        if (ratio < 4.5) found.push(`${url} ${scheme} ${number}: faint ${label.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
      }
    });
  }
};
const drawn = (page) => {
  const hosts = [...page.querySelectorAll(".mermaid")];
  return hosts.length && hosts.every((host) => host.matches("div") && host.drawn?.querySelector("svg"));
};
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
(async () => {
  for (const url of pages) {
    const frame = Object.assign(document.createElement("iframe"), { style: `border:0;width:${widths[0]}px;height:900px`, src: url });
    document.body.append(frame);
    await new Promise((resolve) => frame.addEventListener("load", resolve));
    for (let i = 0; i < 300 && !drawn(frame.contentDocument); i++) await wait(50);
    if (drawn(frame.contentDocument)) judge(frame, url.split("/").pop());
    else found.push(`${url}: not drawn`);
    frame.remove();
  }
  document.querySelector("#found").textContent = JSON.stringify(found);
})();
