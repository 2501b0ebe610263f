// SPDX-License-Identifier: MIT
// Draws the figures, in the theme of the reader, and lets the switches act on them.

const report = JSON.parse(document.getElementById("report-data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const charts = [...document.querySelectorAll(".chart")].map((node) => ({ node, turn: 0, drawn: null, columns: 0 }));
const chosen = { cpu: "all", axis: null };
const LEGEND_ENTRY_PX = { histogram: 155, explained: 155 }; // by the first word of a figure's name

const columnsFor = (node) => Math.max(1, Math.floor((node.clientWidth || document.querySelector("main").clientWidth) / (LEGEND_ENTRY_PX[node.dataset.figure.split("-")[0]] || 105)));

function histogramAxis(spec) {
  const x = spec.layer[0].encoding.x;
  if (chosen.axis === null) chosen.axis = x.scale.type;
  const choice = spec.usermeta.x[chosen.axis];
  const { values, tickCount, ...axis } = x.axis;
  spec.layer[0].encoding.x = { ...x, scale: choice.scale, axis: { ...axis, ...choice.axis } };
}

async function draw(chart) {
  const { node } = chart;
  const turn = ++chart.turn;
  const spec = structuredClone(report.figures[node.dataset.figure][Number(node.dataset.index)]);
  if (spec.usermeta && spec.usermeta.x) histogramAxis(spec);
  delete spec.usermeta;
  // In a closed part nothing has a width: it is drawn as wide as the page, and again when it is opened.
  spec.width = node.clientWidth ? "container" : document.querySelector("main").clientWidth;
  spec.autosize = { type: "fit-x", contains: "padding" };
  for (const param of spec.params || []) if (param.name === "cpu") param.value = chosen.cpu;
  const config = structuredClone(report.config[dark.matches ? "dark" : "light"]);
  chart.columns = columnsFor(node);
  chart.hidden = !node.clientWidth;
  config.legend.columns = chart.columns;
  if (node.clientWidth < 500) {
    config.axisY = { labelLimit: 100 };
    config.legend.labelLimit = node.clientWidth - 40;
    config.legend.layout = { bottom: { direction: "vertical", anchor: "start" } };
  }
  try {
    const drawn = await window.vegaEmbed(node, spec, { actions: false, renderer: "svg", mode: "vega-lite", config, tooltip: { theme: dark.matches ? "dark" : "light" } });
    if (turn !== chart.turn) return drawn.finalize();
    if (chart.drawn) chart.drawn.finalize();
    chart.drawn = drawn;
    node.dataset.drawn = `${chosen.cpu} ${dark.matches ? "dark" : "light"}`;
  } catch (error) {
    node.textContent = `This figure could not be drawn: ${error.message}`;
    throw error;
  }
}

function drawAll() {
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  return Promise.all(charts.map(draw));
}

function press(name, value) {
  chosen[name] = value;
  const group = document.querySelector(`[data-switch="${name}"]`);
  if (group && group.tagName !== "SELECT") {
    for (const button of group.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === value));
  }
}

function showCpu(cpu) {
  press("cpu", cpu);
  for (const chart of charts) {
    if (chart.drawn) {
      chart.drawn.view.signal("cpu", cpu).runAsync();
      chart.node.dataset.drawn = `${cpu} ${dark.matches ? "dark" : "light"}`;
    }
  }
}

function showAxis(axis) {
  press("axis", axis);
  return Promise.all(charts.filter((chart) => chart.node.dataset.figure === "histogram").map(draw));
}

const act = { cpu: showCpu, axis: showAxis };
for (const group of document.querySelectorAll("[data-switch]")) {
  const { switch: name } = group.dataset;
  if (group.tagName === "SELECT") group.addEventListener("change", () => act[name](group.value));
  else for (const button of group.querySelectorAll("button")) button.addEventListener("click", () => act[name](button.value));
}

dark.addEventListener("change", drawAll);

// Leaves out a table's columns, the most dispensable first, until it fits, and says which.
function fit(box) {
  const rows = [...box.querySelectorAll("tr")], heads = [...box.querySelectorAll("thead th")];
  for (const row of rows) for (const cell of row.cells) cell.hidden = false;
  const rank = (head) => Number(head.dataset.dropRank || 0);
  const spare = heads.filter(rank).sort((one, other) => rank(other) - rank(one) || other.cellIndex - one.cellIndex);
  const out = [];
  while (box.scrollWidth > box.clientWidth && spare.length) {
    const head = spare.shift();
    for (const row of rows) if (row.cells[head.cellIndex]) row.cells[head.cellIndex].hidden = true;
    if (head.textContent) out.unshift(head.textContent);
  }
  const note = box.nextElementSibling && box.nextElementSibling.matches(".left-out") ? box.nextElementSibling : document.createElement("p");
  note.className = "caption left-out";
  note.textContent = `On a wider screen: ${out.join(", ")}.`;
  if (out.length) box.after(note);
  else note.remove();
}
const fitAll = () => document.querySelectorAll(".scroll").forEach((box) => box.clientWidth && fit(box));

let waiting = 0;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  fitAll();
  waiting = setTimeout(() => charts.filter((chart) => chart.node.clientWidth && columnsFor(chart.node) !== chart.columns).forEach(draw), 200);
});

for (const details of document.querySelectorAll("details")) {
  details.addEventListener("toggle", fitAll);
  details.addEventListener("toggle", () => charts.filter((chart) => chart.hidden && chart.node.clientWidth).forEach(draw));
}
for (const link of document.querySelectorAll('a[href^="#"]')) {
  link.addEventListener("click", () => {
    for (const details of document.querySelectorAll(`${link.getAttribute("href")} > details`)) details.open = true;
  });
}

let closed = [];
window.addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const details of closed) details.open = true;
});
window.addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
});

fitAll();
await drawAll();
if (chosen.axis !== null) press("axis", chosen.axis);
document.documentElement.dataset.ready = "true";
