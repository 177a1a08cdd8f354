// Draws every diagram of the list as the site's own copy of mermaid does, and writes those that it refuses as JSON.
const diagrams = JSON.parse(document.querySelector("#task").textContent);
(async () => {
  const refused = [];
  for (const [where, text] of diagrams) {
    try {
      await mermaid.parse(text);
    } catch (error) {
      refused.push(`${where}: ${error.message}`);
    }
  }
  document.querySelector("#found").textContent = JSON.stringify(refused);
})();
