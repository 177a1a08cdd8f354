// Diagrams at the size of their text, in the page's colours; one wider than the page scrolls within itself (leeward.css).
const colours = `
  .cluster rect { fill: var(--md-code-bg-color) !important; stroke: var(--md-default-fg-color--lighter) !important }
  .cluster span, .cluster p, .nodeLabel, .nodeLabel p, .node span { color: var(--md-default-fg-color) !important }
  .edgeLabel, .edgeLabel p, .edgeLabel span { color: var(--md-default-fg-color) !important; background: var(--md-default-bg-color) !important }
`;
const initialize = mermaid.initialize.bind(mermaid);
mermaid.initialize = (settings) =>
  initialize({
    ...settings,
    themeCSS: settings.themeCSS + colours,
    themeVariables: { fontSize: "12px" },
    flowchart: { useMaxWidth: false, nodeSpacing: 24, rankSpacing: 32, wrappingWidth: 160 },
  });
const render = mermaid.render.bind(mermaid);
mermaid.render = async (...diagram) => {
  const drawing = await render(...diagram);
  setTimeout(() => document.querySelectorAll("div.mermaid").forEach((host) => (host.scrollLeft = (host.scrollWidth - host.clientWidth) / 2)));
  return drawing;
};
