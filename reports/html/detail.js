// One comparison: how wrong it is, where in the tensor, and how to make it again.
const Detail = (() => {
  let drawings = []; // of the cell that is shown: to be made again when colours change
  document.addEventListener("themechange", () => drawings.forEach((draw) => draw()));

  const facts = (pairs) => el("dl", { class: "facts" }, ...pairs.filter((p) => p[1] !== undefined).map(([name, value]) =>
    el("div", {}, el("dt", { text: name }), el("dd", { text: value }))));

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const mix = (a, b, t) => {
    const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
    return "rgb(" + [0, 1, 2].map((k) => Math.round(part(a, k) + (part(b, k) - part(a, k)) * t)).join(",") + ")";
  };
  const cellColour = (c) => {
    if (c === ".") return colour("--map-0");
    if (c === "!") return colour("--map-nan");
    const low = c.toLowerCase();
    const t = (low.charCodeAt(0) - 97) / 25;
    return low === c ? mix(colour("--map-low"), colour("--map-high"), t) : mix(colour("--map-bad-low"), colour("--map-bad-high"), Math.min(1, Math.max(0, (t - 0.3) / 0.5)));
  };
  const span = (axis, first, tile, extent) => {
    const last = Math.min(extent, first + tile) - 1;
    return axis + " " + (first === last ? first : `${first}\u2013${last}`);
  };
  const cellWords = (c) => {
    if (c === ".") return "equal";
    if (c === "!") return "not finite on one side";
    const low = c.toLowerCase();
    const power = low.charCodeAt(0) - 97 - 15;
    const size = low === "z" ? "largest error from 2^9 times the row's rms" : `largest error below ${power < 0 ? "2^" + power : 2 ** power} of the row's rms`;
    return size + (low === c ? "" : ", beyond its bound");
  };

  const heatMap = (map) => {
    const columns = map.rows[0].length;
    const size = Math.max(5, Math.min(18, Math.floor(480 / Math.max(columns, map.rows.length))));
    const canvas = el("canvas", { width: columns * size, height: map.rows.length * size, role: "img" });
    const readout = el("p", { class: "readout muted small" });
    const draw = () => {
      const context = canvas.getContext("2d");
      map.rows.forEach((row, y) => [...row].forEach((c, x) => {
        context.fillStyle = cellColour(c);
        context.fillRect(x * size, y * size, size - (size > 6 ? 1 : 0), size - (size > 6 ? 1 : 0));
      }));
    };
    draw();
    drawings.push(draw);
    const where = (y, x) => (map.row_axis ? span(map.row_axis, y * map.row_tile, map.row_tile, map.row_extent) + ", " : "") +
      span(map.column_axis, x * map.column_tile, map.column_tile, map.column_extent);
    canvas.addEventListener("mousemove", (e) => {
      const box = canvas.getBoundingClientRect();
      const x = Math.min(columns - 1, Math.floor((e.clientX - box.left) / size));
      const y = Math.min(map.rows.length - 1, Math.floor((e.clientY - box.top) / size));
      if (x >= 0 && y >= 0) readout.textContent = `${where(y, x)}: ${cellWords(map.rows[y][x])}`;
    });
    const beyond = [];
    map.rows.forEach((row, y) => [...row].forEach((c, x) => { if (c === "!" || (c >= "A" && c <= "Z")) beyond.push([y, x]); }));
    const summary = beyond.length === 0 ? "No cell has an element beyond its bound."
      : `${beyond.length} of ${columns * map.rows.length} cells have an element beyond its bound: ` +
        beyond.slice(0, 4).map(([y, x]) => where(y, x)).join("; ") + (beyond.length > 4 ? "; and more" : "") + ".";
    canvas.setAttribute("aria-label", summary);
    const per = [map.row_axis && map.row_tile > 1 ? `${map.row_tile} ${map.row_axis}s` : "", map.column_tile > 1 ? `${map.column_tile} ${map.column_axis}s` : ""].filter(Boolean).join(" by ");
    return el("figure", {},
      el("figcaption", { text: (map.row_axis ? `${map.row_axis} (down) by ${map.column_axis} (across)` : `by ${map.column_axis}`) + (per ? `; a cell is ${per}` : "") }),
      el("div", { class: "plot" },
        el("div", { class: "y" }, ...(map.row_extent > 1 ? [el("span", { text: 0 }), el("span", { text: map.row_extent - 1 })] : [])),
        canvas, el("div", { class: "x" }, ...(map.column_extent > 1 ? [el("span", { text: 0 }), el("span", { text: map.column_extent - 1 })] : []))),
      el("p", { class: "small muted", text: summary }), readout);
  };
  const mapLegend = () => el("p", { class: "legend" }, ...[[".", "equal"], ["c", "tiny"], ["p", "about the row's rms, within its bound"], ["H", "beyond its bound, small"],
    ["T", "beyond its bound, large"], ["!", "not finite on one side"]].map(([c, words]) => el("span", {}, el("i", { style: `background:${cellColour(c)}` }), words)));

  const histogram = (h) => {
    const rows = [];
    const label = (k) => (k === 0 ? "less than 1" : k === h.below.length - 1 ? `${2 ** (k - 1)} or more` : `${2 ** (k - 1)} to ${2 ** k}`);
    const last = Math.max(h.below.findLastIndex((n) => n > 0), h.above.findLastIndex((n) => n > 0));
    const add = (name, n) => { if (n > 0) rows.push([name, n, ""]); };
    for (let k = last; k >= 0; k--) add(`lower by ${label(k)}`, h.below[k]);
    rows.push(["equal", h.equal, "zero"]);
    for (let k = 0; k <= last; k++) add(`higher by ${label(k)}`, h.above[k]);
    if (h.nonfinite > 0) rows.push(["not finite on one side", h.nonfinite, "nan"]);
    const most = Math.log1p(Math.max(...rows.map((r) => r[1])));
    return el("table", { class: "hist" }, el("tbody", {}, ...rows.map(([name, n, kind]) => el("tr", {}, el("td", { class: "small", text: name }),
      el("td", { class: "track" }, n > 0 ? el("div", { class: "fill " + kind, style: `width:${(100 * Math.log1p(n)) / most}%` }) : null),
      el("td", { class: "num", text: Format.integer(n) })))));
  };

  const elements = (list, axes) => {
    const names = list[0].index.map((_, k) => (axes && axes[k]) || `axis ${k}`);
    const row = (e) => {
      const d = Math.abs(Data.number(e.candidate) - Data.number(e.reference));
      return el("tr", {}, ...e.index.map((n) => el("td", { class: "num", text: n })),
        el("td", { class: "num", text: Format.value(e.reference) }), el("td", { class: "bits", text: e.reference_bits ? "0x" + e.reference_bits : "" }),
        el("td", { class: "num", text: Format.value(e.candidate) }), el("td", { class: "bits", text: e.candidate_bits ? "0x" + e.candidate_bits : "" }),
        el("td", { class: "num", text: Format.figure(d) }));
    };
    return el("div", { class: "scroll" }, el("table", { class: "worst" }, el("thead", {}, el("tr", {}, ...names.map((n) => el("th", { class: "num", scope: "col", text: n })),
      el("th", { class: "num", scope: "col", text: "reference" }), el("th", { scope: "col", text: "bits" }), el("th", { class: "num", scope: "col", text: "candidate" }),
      el("th", { scope: "col", text: "bits" }), el("th", { class: "num", scope: "col", text: "|difference|" }))), el("tbody", {}, ...list.map(row))));
  };

  const disputes = (detail) => {
    const score = (v) => (v === undefined ? "-" : Format.value(v));
    return detail.disputed.map((r) => el("div", {},
      el("h3", { text: `${(detail.axes && detail.axes[0]) || "row"} ${r.row}: ${r.differing} positions chosen by one side only` }),
      el("p", { class: "small muted", text: r.reference_margin === undefined && r.candidate_margin === undefined ? "No margin: a side's scores are not published, or nothing was left out."
        : `Margin (lowest score chosen minus highest left out): reference ${score(r.reference_margin)}, candidate ${score(r.candidate_margin)}.` }),
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...["position", "reference", "its score", "candidate", "its score"].map((h, k) => el("th", { scope: "col", class: k === 0 || h === "its score" ? "num" : "", text: h })))),
        el("tbody", {}, ...r.positions.map((p) => el("tr", {}, el("td", { class: "num", text: p.position }), el("td", { text: p.by_reference ? "chosen" : "-" }),
          el("td", { class: "num", text: score(p.reference_score) }), el("td", { text: p.by_candidate ? "chosen" : "-" }), el("td", { class: "num", text: score(p.candidate_score) })))))),
      r.differing > r.positions.length ? el("p", { class: "small muted", text: `${r.differing - r.positions.length} more positions are not listed.` }) : null));
  };

  const copyable = (command) => {
    const button = el("button", { type: "button", text: "Copy", onclick: () => {
      const done = () => { button.textContent = "Copied"; };
      if (navigator.clipboard) navigator.clipboard.writeText(command).then(done, () => {});
      else { getSelection().selectAllChildren(button.previousElementSibling); }
    } });
    return el("div", { class: "repro" }, el("pre", { text: command }), button);
  };

  const show = (i) => {
    const c = Data.cells;
    const x = Data.extra(i);
    const d = x.detail;
    drawings = [];
    const place = `Stage ${Data.stage(i)} of layer ${Data.layer(i).id} (${Data.layer(i).kind}), step ${Data.stepText(Data.stepInfo(i))}`;
    const parts = [
      el("p", {}, Look.tag(i), " ", el("strong", { id: "cell-place", text: place })),
      el("p", { class: "muted small", text: `${Data.fixture(i).path}, candidate ${Data.run(i).candidate} against ${Data.raw.reference}, mode ${Data.run(i).mode}. ${Data.verdict(i).definition}` }),
      x.reason ? el("p", { class: "reason", text: x.reason }) : null,
      x.location ? el("p", { class: "reason" }, el("strong", { text: "Where: " }), x.location) : null,
      x.known ? el("p", { class: "note", text: x.known }) : null,
      facts([["elements", Format.integer(c.count[i])], ["that differ", Format.integer(c.mismatches[i])], ["beyond their bound", x.violations === undefined ? undefined : Format.integer(x.violations)],
        ["largest |difference|", Format.figure(c.abs[i])], ["in units of the last place", Format.figure(c.ulp[i])], ["relative 2-norm", Format.figure(c.l2[i])],
        ["largest error / bound", Format.ratio(Data.ratio(i))], ["shape", d ? `[${d.shape.join(", ")}]` : undefined]]),
      el("p", { class: "small" }, el("span", { class: "muted", text: "Tolerance: " }), el("code", { text: Data.tolerance(i) })),
    ];
    if (d) {
      if (d.maps.length) parts.push(el("h3", { text: "Where in the tensor" }), mapLegend(), el("div", { class: "maps" }, ...d.maps.map(heatMap)));
      if (d.worst.length) parts.push(el("h3", { text: `The ${d.worst.length === 1 ? "worst element" : d.worst.length + " worst elements"}` }), elements(d.worst, d.axes));
      if (d.disputed_rows > 0) parts.push(el("h3", { text: `Choices side by side: the first ${d.disputed.length} of ${d.disputed_rows} rows that differ` }), ...disputes(d));
      parts.push(el("h3", { text: `Errors of the candidate by size${d.histogram.unit === "1" ? "" : `, in ${d.histogram.unit}s`} (bars are logarithmic; sizes that do not occur are left out)` }), histogram(d.histogram));
    } else {
      if (x.worst) parts.push(el("h3", { text: "The worst element" }), elements([x.worst]));
      parts.push(el("p", { class: "muted small", text: c.mismatches[i] === 0 ? "Nothing differs here." : "Maps and histograms are kept for the 200 worst comparisons of a run; this is none of them." }));
    }
    parts.push(el("h3", { text: "How to make just this comparison again" }), copyable(Data.repro(i)),
      el("p", { class: "small" }, el("a", { href: Data.link(i), text: "Link to this cell" })));
    $("cell").replaceChildren(...parts.filter(Boolean));
  };
  return { show, facts };
})();
