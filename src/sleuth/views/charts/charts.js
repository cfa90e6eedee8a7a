// Draws charts of sleuth with plotly, in the colours of the page around them. Shared by the report and the dashboard.
// The page sets --ink, --grid and --ground. sleuthCharts.draw(box, figure) draws, or draws anew and keeps what was zoomed.
"use strict";
const sleuthCharts = (() => {
  const drawn = new Map(); // box → figure
  const coarse = matchMedia("(pointer: coarse)").matches;
  const ZERO = -99; // stands for the logarithm of zero
  const narrow = 560; // pixels, below which long labels would take the room of the chart

  function colours(box) {
    const style = getComputedStyle(box);
    const read = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
    return { ink: read("--ink", "#222"), grid: read("--grid", "#ddd"), ground: read("--ground", "#fff") };
  }

  function axis(given, { ink, grid }) {
    return { gridcolor: grid, zerolinecolor: grid, linecolor: grid, tickcolor: grid, color: ink, ...given };
  }

  function layoutOf(box, figure) {
    const { ink, grid, ground } = colours(box);
    const given = figure.layout;
    const layout = {
      ...given,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 12, family: "system-ui, sans-serif" },
      hoverlabel: { bgcolor: ground, bordercolor: grid, font: { color: ink }, namelength: -1, align: "left" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: ink, activecolor: ink, orientation: "v" },
      dragmode: coarse ? false : "zoom",
      uirevision: "keep",
      xaxis: axis(given.xaxis, { ink, grid }),
      yaxis: axis(given.yaxis, { ink, grid }),
    };
    if (given.meta.names && box.clientWidth < narrow) {
      layout.yaxis = { ...layout.yaxis, showticklabels: false };
      layout.margin = { ...layout.margin, l: 16 };
    }
    return layout;
  }

  // Logarithms are drawn, sizes are told.
  function told(trace) {
    if (trace.type !== "heatmap" || trace.customdata) return trace;
    const customdata = trace.z.map((row) => row.map((v) => (v === null ? "" : v <= ZERO ? "0" : (10 ** v).toExponential(1))));
    return { ...trace, customdata, hovertemplate: "%{y}<br>step %{x}: %{customdata}<extra></extra>" };
  }

  function plot(box, figure) {
    const data = figure.layout.meta.logarithmic ? figure.data.map(told) : figure.data;
    const config = {
      responsive: true,
      displaylogo: false,
      displayModeBar: coarse ? true : "hover",
      modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d"].concat(coarse ? [] : ["toImage"])],
      scrollZoom: false,
    };
    return Plotly.react(box, data, layoutOf(box, figure), config);
  }

  function control(figure, box) {
    const bar = document.createElement("div");
    bar.className = "chart-controls";
    const { scale, choose } = figure.layout.meta;
    if (scale) {
      const label = document.createElement("label");
      const tick = document.createElement("input");
      tick.type = "checkbox";
      tick.checked = figure.layout.yaxis.type === "log";
      tick.onchange = () => {
        drawn.get(box).layout.yaxis.type = tick.checked ? "log" : "linear";
        Plotly.relayout(box, { "yaxis.type": tick.checked ? "log" : "linear", "yaxis.autorange": true });
      };
      label.append(tick, " logarithmic");
      bar.append(label);
    }
    if (choose) {
      const label = document.createElement("label");
      const list = document.createElement("select");
      for (const name of new Set(figure.data.map(choice))) list.append(new Option(plain(name), name));
      list.onchange = () => {
        drawn.get(box).data.forEach((trace) => (trace.visible = choice(trace) === list.value));
        plot(box, drawn.get(box));
      };
      label.append(`${choose} `, list);
      bar.append(label);
    }
    return bar.childElementCount ? bar : null;
  }

  // Traces that are shown together have the same group.
  const choice = (trace) => trace.legendgroup || trace.name;

  // Names are escaped for plotly; a list shows them as they are.
  const plain = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

  // + and − zoom, arrows move, 0 shows everything.
  function onKey(event) {
    const box = event.currentTarget;
    const full = box._fullLayout;
    if (event.target !== box || event.ctrlKey || event.metaKey || event.altKey || !full?.xaxis) return;
    const [low, high] = full.xaxis.range;
    const width = high - low;
    const ranges = {
      "+": [low + width / 4, high - width / 4],
      "-": [low - width / 2, high + width / 2],
      ArrowLeft: [low - width / 4, high - width / 4],
      ArrowRight: [low + width / 4, high + width / 4],
    };
    const wanted = ranges[event.key === "=" ? "+" : event.key];
    if (wanted) Plotly.relayout(box, { "xaxis.range": wanted });
    else if (event.key === "0") Plotly.relayout(box, { "xaxis.autorange": true, "yaxis.autorange": full.yaxis.autorange || true });
    else return;
    event.preventDefault();
  }

  async function draw(box, figure) {
    const first = !drawn.has(box);
    if (!first) keepChoices(drawn.get(box), figure);
    drawn.set(box, figure);
    if (first) {
      box.tabIndex = 0;
      box.addEventListener("keydown", onKey);
      const bar = control(figure, box);
      if (bar) (box.parentElement.querySelector(".chart-head") || box.parentElement).append(bar);
    }
    await plot(box, figure);
  }

  function keepChoices(before, figure) {
    if (figure.layout.meta.scale) figure.layout.yaxis.type = before.layout.yaxis.type;
    if (figure.layout.meta.choose) {
      const name = choice(before.data.find((trace) => trace.visible) || figure.data[0]);
      const known = figure.data.some((trace) => choice(trace) === name);
      if (known) figure.data.forEach((trace) => (trace.visible = choice(trace) === name));
    }
  }

  function recolour() {
    for (const [box, figure] of drawn) if (box.isConnected) plot(box, figure);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);

  return { draw, recolour };
})();
