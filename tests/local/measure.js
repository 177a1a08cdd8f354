// Measures the page in the frame; the result is JSON in the <pre>. A text counts as seen where it has a box.
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {
  const page = frame.contentDocument;
  const view = frame.contentWindow;
  const box = (rect) => ({ left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom });
  const seen = (rect) => rect.width > 0 && rect.height > 0;
  const texts = [];
  for (const element of page.body.querySelectorAll("*")) {
    const own = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim() && element.tagName !== "title");
    for (const node of own) {
      const range = page.createRange();
      range.selectNodeContents(node);
      const rect = element.tagName === "text" ? element.getBoundingClientRect() : range.getBoundingClientRect();
      if (!seen(rect)) continue;
      texts.push({
        text: node.data.trim(),
        kind: element.getAttribute("class") || element.tagName,
        chart: element.closest(".chart") !== null,
        size: parseFloat(view.getComputedStyle(element).fontSize),
        ...box(rect),
      });
    }
  }
  const glyphs = [...page.querySelectorAll(".chart .mark .shape")]
    .map((shape) => ({ text: shape.closest(".mark").getAttribute("href"), ...box(shape.getBoundingClientRect()) }))
    .filter((glyph) => glyph.right > glyph.left);
  const found = {
    width: page.documentElement.clientWidth,
    scrollWidth: page.documentElement.scrollWidth,
    background: view.getComputedStyle(page.body).backgroundColor,
    colour: view.getComputedStyle(page.body).color,
    texts,
    glyphs,
  };
  document.querySelector("pre").textContent = JSON.stringify(found);
});
