// Draws the charts of a report with Vega-Lite, shows the values under the pointer, and moves what a chart shows.
// Texts of runs get into the page by textContent only, and Vega's expressions are interpreted, never compiled.
const hover = document.getElementById("hover");
const views = {};

const CONFIG = {
  background: null,
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: {
    labelColor: "currentColor", titleColor: "currentColor", domainColor: "currentColor", tickColor: "currentColor",
    gridColor: "currentColor", gridOpacity: 0.15, titleFontWeight: "normal", labelFontSize: 12, titleFontSize: 12,
  },
};

function makeRows(shortened) {
  const columns = {};
  for (const [name, column] of Object.entries(shortened)) {
    columns[name] = column.repeated ? column.repeated.flatMap(([value, count]) => Array(count).fill(value)) : column;
  }
  const names = Object.keys(columns);
  return columns[names[0]].map((_, row) => Object.fromEntries(names.map((name) => [name, columns[name][row]])));
}

function showValue(handler, event, item, value) {
  hover.hidden = !value;
  if (!value) return;
  const list = document.createElement("dl");
  for (const [name, text] of Object.entries(value)) {
    if (text === "" || text === "null") continue;
    list.append(Object.assign(document.createElement("dt"), { textContent: name }));
    list.append(Object.assign(document.createElement("dd"), { textContent: text }));
  }
  hover.replaceChildren(list);
  const { clientX: x, clientY: y } = event;
  const { width, height } = hover.getBoundingClientRect();
  hover.style.left = `${Math.max(4, x + 14 + width < innerWidth ? x + 14 : x - 14 - width)}px`;
  hover.style.top = `${Math.max(4, y + 14 + height < innerHeight ? y + 14 : y - 14 - height)}px`;
}

function changeDomain(scale, axis, action) {
  const isLog = scale.type === "log";
  const [low, high] = scale.domain().map((value) => (isLog ? Math.log(value) : Number(value)));
  const size = high - low;
  const [start, end] = {
    in: [low + size / 4, high - size / 4],
    out: [low - size / 2, high + size / 2],
    left: axis === "x" ? [low - size / 4, high - size / 4] : [low, high],
    right: axis === "x" ? [low + size / 4, high + size / 4] : [low, high],
    up: axis === "y" ? [low + size / 4, high + size / 4] : [low, high],
    down: axis === "y" ? [low - size / 4, high - size / 4] : [low, high],
  }[action];
  return isLog ? [Math.exp(start), Math.exp(end)] : [start, end];
}

function changeView(view, action) {
  for (const axis of ["x", "y"]) {
    view.signal(`zoom_${axis}`, action === "all" ? null : changeDomain(view.scale(axis), axis, action));
  }
  return view.runAsync();
}

async function draw(name, chart) {
  const place = document.getElementById(name);
  const datasets = Object.fromEntries(Object.entries(chart.data).map(([key, columns]) => [key, makeRows(columns)]));
  const options = { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: showValue, config: CONFIG };
  const { view } = await window.vegaEmbed(place, { ...chart.spec, datasets }, options);
  views[name] = view;
  const tools = place.parentElement.querySelector(".tools");
  if (!tools) return;
  tools.hidden = false;
  tools.addEventListener("click", (event) => {
    if (event.target.dataset.action) changeView(view, event.target.dataset.action);
  });
}

window.views = views; // of the charts that are drawn, by the id of their place
const charts = JSON.parse(document.getElementById("charts").textContent);
for (const [name, chart] of Object.entries(charts)) {
  await draw(name, chart);
  await new Promise((resume) => setTimeout(resume)); // the page stays responsive
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hover.hidden = true; });
document.documentElement.dataset.drawn = String(Object.keys(views).length);
