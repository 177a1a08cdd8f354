// Asks the search worker of the built site each question of standard input, a JSON array, and prints the pages of each answer, best first.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site] = process.argv.slice(2);
const workers = path.join(site, "assets/javascripts/workers");
const worker = fs.readdirSync(workers).find((file) => /^search\..*\.js$/.test(file));
const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf-8"));
const [SETUP, QUERY] = [0, 2]; // kinds of the worker's messages
let answer, ask;
const page = { console: { warn() {} }, postMessage: (message) => (answer = message.data), addEventListener: (_, listener) => (ask = listener) };
page.self = page;
vm.runInNewContext(fs.readFileSync(path.join(workers, worker), "utf-8"), page);
(async () => {
  await ask({ data: { type: SETUP, data: { ...index, options: { suggest: false } } } });
  const answers = [];
  for (const question of JSON.parse(fs.readFileSync(0, "utf-8"))) {
    await ask({ data: { type: QUERY, data: question } });
    answers.push(answer.items.map((items) => items.map((item) => item.location)));
  }
  console.log(JSON.stringify(answers));
})();
