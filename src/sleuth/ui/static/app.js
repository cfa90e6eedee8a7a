// Draws what the server has computed. Nothing is judged here, and every text goes into the page as text.

const PLACE = { list: /^\/$/, run: /^\/runs\/(.+)$/, comparison: /^\/compare$/ };
// A step shows up within two seconds: the training writes it within one, and here it is asked for twice a second.
const LIVE_MS = 500, STILL_MS = 2000;
const WORDS = {
  running: "running", silent: "no news", completed: "completed", stopped: "stopped", interrupted: "interrupted",
  failed: "failed", unreadable: "unreadable",
};
const $ = (selector, root = document) => root.querySelector(selector);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// ---- asking -------------------------------------------------------------------------------------------------------------------

const tags = new Map();

/** What changed since it was last asked for; null: nothing. */
async function ask(address) {
  const headers = tags.has(address) ? { "If-None-Match": tags.get(address) } : {};
  const answer = await fetch(address, { headers, cache: "no-store" });
  if (answer.status === 304) return null;
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error || `the server answered ${answer.status}`);
  const found = await answer.json();
  tags.set(address, answer.headers.get("ETag"));
  return found;
}

/** Calls `look` again and again while somebody sees the page; it says whether something is going on. */
async function follow(look) {
  for (;;) {
    let live = false;
    if (!document.hidden) {
      try {
        live = await look();
        write($("#state"), "");
      } catch (error) {
        write($("#state"), error instanceof TypeError ? "No connection: has sleuth ui ended?" : error.message);
      }
    }
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, live ? LIVE_MS : STILL_MS);
      document.addEventListener("visibilitychange", () => { clearTimeout(timer); resolve(); }, { once: true });
    });
  }
}

// ---- words --------------------------------------------------------------------------------------------------------------------

const long = (s) => (s < 10 ? `${s.toFixed(1)} s` : s < 120 ? `${s.toFixed(0)} s` : s < 7200 ? `${(s / 60).toFixed(0)} min` : `${(s / 3600).toFixed(1)} h`);
const number = (value) => (value == null ? "–" : Number(value.toPrecision(4)).toString());
const count = (value) => value.toLocaleString("en");
const time = (seconds) => (seconds == null ? "–" : new Date(seconds * 1000).toLocaleString("sv").slice(0, 16));

function status(run) {
  const text = run.status === "silent" ? `${WORDS.silent} since ${time(run.written)}` : WORDS[run.status] || run.status;
  return [make("span", { class: `dot ${run.status}`, "aria-hidden": "true" }), text];
}

function verdict(run) {
  if (run.trouble) return [run.trouble];
  if (run.verdict === null) return [make("span", { class: "quiet" }, "being judged …")];
  const mark = { sick: "✗ ", healthy: "✓ ", unknown: "? " }[run.verdict];
  const text = run.culprit || (run.verdict === "healthy" ? "healthy" : run.verdict);
  return [make("span", { class: run.verdict }, mark + text), make("small", {}, run.title)];
}

function cells(run, ...more) {
  const link = run.trouble ? run.name : make("a", { href: `/runs/${encodeURIComponent(run.name)}` }, run.name);
  return {
    name: make("th", { scope: "row", class: "name" }, link, make("small", {}, run.subject),
      make("small", { class: "brief" }, `${count(run.steps)} steps · ${WORDS[run.status] || run.status}`)),
    began: make("td", { class: "began" }, time(run.began)),
    steps: make("td", { class: "number" }, count(run.steps)),
    loss: make("td", { class: "number" }, number(run.loss)),
    status: make("td", { class: "status" }, ...status(run)),
    verdict: make("td", {}, ...verdict(run)),
  };
}

// ---- the list -----------------------------------------------------------------------------------------------------------------

function showList() {
  document.title = "Runs · sleuth";
  const body = $("tbody"), filter = $("#filter"), rows = new Map();

  function narrow() {
    const wanted = filter.value.toLowerCase();
    for (const row of rows.values()) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
  function choose() {
    const chosen = body.querySelectorAll("input:checked").length;
    $("#compare").disabled = chosen < 2;
    write($("#chosen"), chosen < 2 ? "Tick two or more to compare them." : `${chosen} runs are ticked.`);
  }
  filter.addEventListener("input", narrow);
  body.addEventListener("change", choose);

  function update(run, place) {
    let row = rows.get(run.name);
    if (!row) {
      const tick = make("input", { type: "checkbox", name: "run", value: run.name, "aria-label": `Compare ${run.name}`, disabled: !!run.trouble });
      row = make("tr", {}, make("td", { class: "tick" }, tick));
      rows.set(run.name, row);
    }
    const key = JSON.stringify(run);
    if (row.key !== key) {
      // Only cells whose text is another are replaced: whoever stands on a link stays there.
      Object.values(cells(run)).forEach((cell, i) => {
        const before = row.cells[i + 1];
        if (!before) row.append(cell);
        else if (!before.isEqualNode(cell)) before.replaceWith(cell);
      });
      row.key = key;
    }
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] || null);
  }

  return async () => {
    const found = await ask("/api/runs");
    if (found) {
      write($("#folder"), found.folder);
      found.runs.forEach(update);
      const names = new Set(found.runs.map((run) => run.name));
      for (const [name, row] of rows) if (!names.has(name)) { row.remove(); rows.delete(name); }
      $("#none").hidden = found.runs.length > 0;
      narrow();
      choose();
      showList.live = found.runs.some((run) => run.status === "running" || run.verdict === null) || !found.runs.length;
    }
    return showList.live;
  };
}

// ---- charts -------------------------------------------------------------------------------------------------------------------

let scripts;

/** Plotly's script is large: the page is there before it. */
function drawing() {
  scripts ??= Promise.all(["plotly", "charts"].map((name) => new Promise((resolve, reject) => {
    const script = make("script", { src: document.documentElement.dataset[name] });
    document.head.append(Object.assign(script, { async: false, onload: resolve, onerror: reject }));
  })));
  return scripts;
}

/** Charts in their order in `holder`; those that are there already are drawn anew where they stand, zoom and all. */
function drawCharts(holder, charts) {
  const known = new Map([...holder.children].map((figure) => [figure.dataset.name, figure]));
  charts.forEach((chart, place) => {
    const figure = known.get(chart.name) || frame(chart);
    known.delete(chart.name);
    write($("h3", figure), chart.title);
    write($(".note", figure), chart.note);
    $(".chart", figure).setAttribute("aria-label", chart.spoken);
    if (holder.children[place] !== figure) holder.insertBefore(figure, holder.children[place] || null);
  });
  for (const gone of known.values()) gone.remove();
  charts.forEach((chart, place) => draw($(".chart", holder.children[place]), chart.figure));
}

function frame(chart) {
  const box = make("div", { class: "chart", role: "img", tabindex: "0", "aria-describedby": "keys" });
  box.style.height = `${chart.height}px`;
  return make("figure", { "data-name": chart.name },
    make("figcaption", { class: "chart-head" }, make("h3")), box, make("p", { class: "note quiet" }));
}

const AHEAD = { rootMargin: "400px 0px" };
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.near = isIntersecting;
    drawNow(target);
  }
}, AHEAD);

/** As soon as it is near the view, and not while somebody pulls a frame over it to zoom. */
function draw(box, figure) {
  if (!box.known) {
    box.known = true;
    box.addEventListener("pointerdown", () => (box.held = true));
    addEventListener("pointerup", () => { box.held = false; drawNow(box); });
    seen.observe(box);
  }
  box.next = figure;
  drawNow(box);
}

async function drawNow(box) {
  await drawing();
  const figure = box.next;
  if (!figure || !box.near || box.held) return;
  box.next = null;
  await sleuthCharts.draw(box, figure);
}

// ---- one run ------------------------------------------------------------------------------------------------------------------

function showRun(name) {
  document.title = `${name} · sleuth`;
  write($("h1"), name);
  write($("#place"), `/ ${name}`);
  const base = `/api/runs/${encodeURIComponent(name)}`, near = new Set();
  drawing();
  // What is far below is neither asked for nor drawn.
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? near.add(target) : near.delete(target);
  }, { rootMargin: "1000px 0px" });

  function section(part, place) {
    const parts = $("#parts");
    let found = document.getElementById(part.name);
    if (!found) {
      const body = make("div", { class: part.charts ? "charts" : "text" });
      found = make("section", { id: part.name, class: part.charts ? "waiting" : "" }, make("h2", {}, part.title), body);
      if (part.charts) watcher.observe(found);
      $("#jump").insertBefore(make("a", { href: `#${part.name}` }, part.title), $("#jump").children[place] || null);
      parts.insertBefore(found, parts.children[place] || null);
    }
    if (!part.charts) fill($(".text", found), part.html);
    show(found, part.charts ? !found.dataset.empty : part.html !== "");
  }

  function show(section, is) {
    section.hidden = !is;
    $(`#jump a[href="#${section.id}"]`).hidden = !is;
  }

  let live = true;
  return async () => {
    const found = await ask(base);
    if (found) {
      live = found.summary.status === "running" || found.judging;
      summarise(found.summary);
      if (found.verdict) write($("#said"), `Verdict: ${found.verdict}. ${found.culprit || ""} ${found.title}`);
      const first = !$("#parts").children.length;
      found.parts.forEach(section);
      // A link to a section is older than the section.
      if (first && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
    }
    for (const part of near) {
      const drawn = await ask(`${base}/charts/${part.id}`);
      if (!drawn) continue;
      part.classList.remove("waiting");
      drawn.charts.length ? delete part.dataset.empty : (part.dataset.empty = "yes");
      show(part, drawn.charts.length > 0);
      drawCharts($(".charts", part), drawn.charts);
    }
    return live;
  };
}

function summarise(summary) {
  const rows = {
    Status: status(summary), Steps: [count(summary.steps)], Loss: [number(summary.loss)], Began: [time(summary.began)],
    Took: [long(summary.seconds)], Watched: [summary.subject], Framework: [summary.framework || "–"],
  };
  const list = $("#summary");
  if (!list.children.length) list.append(...Object.keys(rows).map((name) => make("div", {}, make("dt", {}, name), make("dd"))));
  Object.values(rows).forEach((parts, i) => {
    const next = make("dd", {}, ...parts), before = $("dd", list.children[i]);
    if (!before.isEqualNode(next)) before.replaceWith(next);
  });
}

/** The texts come from Python, with every name escaped. What was unfolded stays so, and charts in them stay where they are. */
function fill(holder, html) {
  if (holder.shown === html) return;
  const title = (details) => $("summary b, summary", details).textContent;
  const folds = new Map([...holder.querySelectorAll("details")].map((details) => [title(details), details.open]));
  const boxes = new Map([...holder.querySelectorAll(".chart")].map((box) => [box.id, box]));
  holder.innerHTML = html;
  holder.shown = html;
  for (const details of holder.querySelectorAll("details")) details.open = folds.get(title(details)) ?? details.open;
  for (const box of holder.querySelectorAll(".chart")) {
    const figure = JSON.parse($("script", box.parentElement).textContent);
    const kept = boxes.get(box.id) || box;
    if (kept !== box) box.replaceWith(kept);
    draw(kept, figure);
  }
}

// ---- runs side by side --------------------------------------------------------------------------------------------------------

function showComparison() {
  document.title = "Runs side by side · sleuth";
  write($("#place"), "/ side by side");
  const names = new URLSearchParams(location.search).getAll("run");
  const address = `/api/compare?${new URLSearchParams(names.map((name) => ["run", name]))}`;
  let live = true;
  drawing();
  return async () => {
    const found = await ask(address);
    if (!found) return live;
    $("#all").hidden = false;
    live = found.runs.some((run) => run.status === "running" || run.verdict === null);
    $("tbody").replaceChildren(...found.runs.map((run) => {
      const { name, steps, loss, status: state, verdict: said } = cells(run);
      return make("tr", {}, name, steps, loss, state, said);
    }));
    const { partings, options, same, charts } = found.comparison;
    $("#partings").replaceChildren(...partings.map(({ first, other, headline, sentences }) => make("article", {},
      make("h3", {}, headline), make("p", { class: "quiet" }, `${first} and ${other}`),
      make("ul", {}, ...sentences.map((text) => make("li", {}, text))),
    )));
    write($("#same"), `Of ${options.length + same} things that were noted, ${options.length} differ.`);
    $("#options thead").replaceChildren(make("tr", {}, make("th", { scope: "col" }, "Setting"), ...found.runs.map((run) => make("th", { scope: "col" }, run.name))));
    $("#options tbody").replaceChildren(...options.map(({ name, values }) =>
      make("tr", {}, make("th", { scope: "row" }, name), ...values.map((value) => make("td", {}, value ?? "–")))));
    drawCharts($("#curves .charts"), charts);
    return live;
  };
}

// ---- the page -----------------------------------------------------------------------------------------------------------------

function chooseColours() {
  const select = $("#theme"), root = document.documentElement;
  select.value = localStorage.getItem("sleuth-colours") || "";
  const set = () => {
    root.dataset.theme = select.value;
    localStorage.setItem("sleuth-colours", select.value);
    if (scripts) sleuthCharts.recolour();
  };
  select.addEventListener("change", set);
  root.dataset.theme = select.value;
}

function open() {
  chooseColours();
  const [place, found] = Object.entries(PLACE).map(([name, form]) => [name, location.pathname.match(form)]).find(([, match]) => match);
  $("#main").replaceChildren($(`#${place}`).content.cloneNode(true));
  const show = { list: showList, run: showRun, comparison: showComparison }[place];
  follow(show(found[1] && decodeURIComponent(found[1])));
}

open();
