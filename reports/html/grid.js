// The layers x stages grid of one step of one run (a fixture, a candidate, a mode).
const Grid = (() => {
  let run = 0;
  let step = 0;
  let focus = [0, 0]; // row, column of the cell that Tab reaches
  let rows = [];      // cell elements; null where the layer has no such stage
  let layersShown = [];
  let stagesShown = [];
  let selected = -1;

  const stepsOf = (r) => [...Data.index[r].keys()].sort((a, b) => a - b);
  const cellsOf = (r, s) => [...(Data.index[r].get(s) || new Map()).values()].flat();

  const build = () => {
    const failures = Data.raw.runs.map(() => 0);
    for (let i = 0; i < Data.count; i++) if (Data.fails(i)) failures[Data.cells.run[i]]++;
    Data.raw.runs.forEach((r, k) => {
      const failing = failures[k];
      $("run").append(el("option", { value: k, text: `${Data.raw.fixtures[r.fixture].path}, ${r.candidate}, ${r.mode}` + (failing ? ` (${failing} fail)` : "") }));
    });
    $("run").addEventListener("change", (e) => show(Number(e.target.value), stepsOf(Number(e.target.value))[0]));
    $("legend").append(...Look.legend());
    $("grid").addEventListener("keydown", onKey);
    $("steps").addEventListener("keydown", onStepKey);
  };

  const show = (newRun, newStep) => {
    run = newRun;
    step = newStep;
    $("run").value = run;
    drawSteps();
    drawGrid();
  };

  const drawSteps = () => {
    const fixture = Data.raw.fixtures[Data.raw.runs[run].fixture];
    $("steps").replaceChildren(...stepsOf(run).map((s) => {
      const i = Data.worst(cellsOf(run, s));
      const name = Data.stepText(fixture.steps[s]);
      return el("button", { type: "button", class: Look.className(i), text: fixture.steps[s].index, "aria-pressed": String(s === step),
        tabindex: s === step ? 0 : -1, "data-step": s, title: `step ${name}: ${Look.words(i)}`, "aria-label": `step ${name}, worst: ${Look.words(i)}`,
        onclick: () => { show(run, s); $("steps").querySelector("[aria-pressed=true]").focus(); } });
    }));
    const info = fixture.steps[step];
    $("step-text").textContent = info.tokens === 1 ? `Step ${info.index}: one token at position ${info.start}.`
      : `Step ${info.index}: ${info.tokens} tokens at positions ${info.start} to ${info.start + info.tokens - 1}.`;
  };

  const drawGrid = () => {
    const here = Data.index[run].get(step);
    const width = Data.raw.stages.length;
    layersShown = [...new Set([...here.keys()].map((k) => Math.floor(k / width)))].sort((a, b) => Data.raw.layers[a].id - Data.raw.layers[b].id);
    stagesShown = [...new Set([...here.keys()].map((k) => k % width))].sort((a, b) => a - b);
    const head = el("div", { class: "row headrow", role: "row" }, el("div", { class: "corner", role: "columnheader", text: "layer" }),
      ...stagesShown.map((s) => el("div", { class: "colhead", role: "columnheader" }, el("span", { text: Data.raw.stages[s] }))));
    rows = [];
    const body = layersShown.map((l, y) => {
      const layer = Data.raw.layers[l];
      rows.push([]);
      return el("div", { class: "row", role: "row" },
        el("div", { class: "rowhead", role: "rowheader", title: layer.kind }, el("b", { text: layer.id }), el("span", { text: layer.kind })),
        ...stagesShown.map((s, x) => {
          const list = here.get(Data.place(l, s));
          const node = list ? cell(Data.worst(list), y, x) : el("div", { class: "cell none", role: "gridcell", "aria-label": `layer ${layer.id} has no ${Data.raw.stages[s]}` });
          rows[y].push(list ? node : null);
          return node;
        }));
    });
    $("grid").setAttribute("aria-rowcount", layersShown.length + 1);
    $("grid").setAttribute("aria-colcount", stagesShown.length + 1);
    $("grid").replaceChildren(head, ...body);
    if (!at(focus[0], focus[1])) focus = firstCell();
    if (at(focus[0], focus[1])) at(focus[0], focus[1]).tabIndex = 0;
    mark();
  };

  const cell = (i, y, x) =>
    el("button", { type: "button", class: "cell " + Look.className(i) + (Filter.active() && !Filter.passes(i) ? " dim" : ""), role: "gridcell", tabindex: -1,
      "data-cell": i, "aria-selected": "false", text: Look.text(i), title: `layer ${Data.layer(i).id}, ${Data.stage(i)}: ${Look.words(i)}`,
      "aria-label": `layer ${Data.layer(i).id}, stage ${Data.stage(i)}: ${Look.words(i)}`,
      onclick: () => { moveTo(y, x, false); Page.select(i, true); } });

  const at = (y, x) => (rows[y] ? rows[y][x] : null);
  const firstCell = () => {
    for (let y = 0; y < rows.length; y++) for (let x = 0; x < rows[y].length; x++) if (rows[y][x]) return [y, x];
    return [0, 0];
  };
  const moveTo = (y, x, withFocus = true) => {
    const node = at(y, x);
    if (!node) return false;
    const old = at(focus[0], focus[1]);
    if (old) old.tabIndex = -1;
    node.tabIndex = 0;
    focus = [y, x];
    if (withFocus) { node.focus({ preventScroll: true }); node.scrollIntoView({ block: "nearest", inline: "nearest" }); }
    return true;
  };
  // The next cell in a direction; places without a stage are passed over.
  const walk = (dy, dx) => {
    let [y, x] = focus;
    for (;;) {
      y += dy; x += dx;
      if (y < 0 || x < 0 || y >= rows.length || x >= stagesShown.length) return;
      if (moveTo(y, x)) return;
    }
  };
  const edge = (from, dx) => { for (let x = from; x >= 0 && x < stagesShown.length; x += dx) if (moveTo(focus[0], x)) return; };
  const turn = (by) => {
    const all = stepsOf(run);
    const next = all[all.indexOf(step) + by];
    if (next === undefined) return;
    show(run, next);
    moveTo(focus[0], focus[1]);
  };
  const onKey = (e) => {
    const actions = { ArrowUp: () => walk(-1, 0), ArrowDown: () => walk(1, 0), ArrowLeft: () => walk(0, -1), ArrowRight: () => walk(0, 1),
      Home: () => edge(0, 1), End: () => edge(stagesShown.length - 1, -1), PageUp: () => turn(-1), PageDown: () => turn(1) };
    if (actions[e.key]) { e.preventDefault(); actions[e.key](); }
  };
  const onStepKey = (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!by) return;
    e.preventDefault();
    const all = stepsOf(run);
    const next = all[all.indexOf(step) + by];
    if (next !== undefined) { show(run, next); $("steps").querySelector("[aria-pressed=true]").focus(); }
  };

  const mark = () => {
    for (const node of $("grid").querySelectorAll("[aria-selected=true]")) node.setAttribute("aria-selected", "false");
    const node = $("grid").querySelector(`[data-cell="${selected}"]`);
    if (node) node.setAttribute("aria-selected", "true");
  };
  const reveal = (i) => {
    selected = i;
    if (run !== Data.cells.run[i] || step !== Data.cells.step[i] || rows.length === 0) show(Data.cells.run[i], Data.cells.step[i]);
    const y = layersShown.indexOf(Data.cells.layer[i]);
    const x = stagesShown.indexOf(Data.cells.stage[i]);
    moveTo(y, x, false);
    mark();
  };
  const focusCell = () => moveTo(focus[0], focus[1]);
  return { build, show, reveal, redraw: () => { if (rows.length) drawGrid(); }, focusCell };
})();
