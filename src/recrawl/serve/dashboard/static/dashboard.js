// Charts, the slider of the budget, the pause of the live feed, and keys. Every page works without it, except charts.
"use strict";

(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const percent = (share) => (share == null ? "–" : (100 * share).toFixed(1) + "%");
  const whole = (n) => (n == null ? "–" : Math.abs(n) >= 100 ? Math.round(n).toLocaleString("en") : String(+n.toPrecision(3)));

  const hereLine = (x) => ({
    hooks: {
      draw: (u) => {
        const at = u.valToPos(x, "x", true), { ctx, bbox } = u, ratio = devicePixelRatio || 1;
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle = colour("--warn");
        ctx.lineWidth = 1.5 * ratio;
        ctx.setLineDash([5 * ratio, 4 * ratio]);
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        ctx.stroke();
        ctx.font = `${13 * ratio}px system-ui, sans-serif`;
        ctx.textAlign = "left";
        ctx.textBaseline = "alphabetic";
        ctx.fillText("you are here", at + 6 * ratio, bbox.top + bbox.height - 8 * ratio);
        ctx.restore();
      },
    },
  });

  const whiskers = (audits) => ({
    hooks: {
      draw: (u) => {
        const { ctx } = u, ratio = devicePixelRatio || 1;
        ctx.save();
        ctx.strokeStyle = colour("--bad");
        ctx.lineWidth = 1.5 * ratio;
        for (const [at, low, high] of audits) {
          const x = u.valToPos(at, "x", true);
          ctx.beginPath();
          ctx.moveTo(x, u.valToPos(low, "y", true));
          ctx.lineTo(x, u.valToPos(high, "y", true));
          ctx.stroke();
        }
        ctx.restore();
      },
    },
  });

  const clock = (seconds) => {
    const at = new Date(seconds * 1000), two = (n) => String(n).padStart(2, "0");
    const midnight = at.getHours() + at.getMinutes() === 0;
    return midnight ? at.toLocaleDateString("en-GB", { day: "numeric", month: "short" }) : `${two(at.getHours())}:${two(at.getMinutes())}`;
  };

  const logTicks = (low, high) => {
    const found = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
      for (const step of [1, 2, 5]) if (step * power >= low && step * power <= high) found.push(step * power);
    }
    return found;
  };

  const line = (label, stroke, value, more) => ({ label, stroke, width: 2, value: (_, v) => value(v), spanGaps: true, ...more });

  const looks = (data) => {
    const [accent, warn, bad, quiet] = ["--accent", "--warn", "--bad", "--quiet"].map(colour);
    if (data.kind === "freshness") {
      const dots = (stroke, size) => ({ stroke, width: 0, paths: () => null, points: { show: true, size, fill: stroke, stroke } });
      return [
        line("believed", accent, percent, { points: { show: false } }),
        line("ledger, since the start", quiet, percent, { points: { show: false }, dash: [6, 4] }),
        line("audit", bad, percent, dots(bad, 8)),
      ];
    }
    if (data.kind === "requests") {
      return [line("requests per hour", accent, whole, { points: { show: false } }), line("budget", warn, whole, { points: { show: false }, dash: [6, 4] })];
    }
    if (data.kind === "curve") {
      return [
        line("low", quiet, percent, { width: 1, points: { show: false } }),
        line("high", quiet, percent, { width: 1, points: { show: false } }),
        line("freshness", accent, percent, { points: { show: true, size: 6, fill: accent } }),
      ];
    }
    return [line(data.series[0].label, accent, (v) => (v == null ? "–" : v.toFixed(3)), { points: { show: false } })];
  };

  const draw = (figure) => {
    const place = figure.querySelector(".plot"), data = JSON.parse(figure.dataset.chart);
    if (!data.times || data.times.length < 2 || !window.uPlot) return;
    place.replaceChildren();
    const curve = data.kind === "curve", shares = curve || data.kind === "freshness";
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "13px system-ui, sans-serif" };
    const values = [...data.series.flatMap((one) => one.values), ...(data.audits || []).flatMap(([, low, high]) => [low, high])].filter((v) => v != null);
    const low = Math.min(...values), high = Math.max(...values), room = Math.max(0.02, (high - low) * 0.1);
    const range = shares ? [Math.max(0, low - room), Math.min(1, high + room)] : [0, Math.max(high * 1.1, 1e-6)];
    const options = {
      width: place.clientWidth,
      height: Number(figure.dataset.height),
      legend: { live: true },
      cursor: { drag: { x: !curve, y: false } },
      scales: { x: curve ? { time: false, distr: 3, range: () => [data.times[0], data.times.at(-1)] } : { time: true }, y: { range: () => range } },
      axes: [
        { ...axis, space: 70, ...(curve ? { splits: () => logTicks(data.times[0], data.times.at(-1)) } : {}), ...{ values: (_, ticks) => ticks.map((t) => (t == null ? "" : curve ? whole(t) : clock(t))) } },
        { ...axis, size: 64, values: (_, ticks) => ticks.map((t) => (shares ? (100 * t).toFixed(ticks.length > 1 && ticks[1] - ticks[0] < 0.01 ? 1 : 0) + "%" : whole(t))) },
      ],
      series: [curve ? { label: "requests a day", value: (_, v) => whole(v) } : { value: (_, v) => (v == null ? "–" : new Date(v * 1000).toLocaleString()) }, ...looks(data)],
      bands: curve ? [{ series: [2, 1], fill: colour("--neutral-bg") }] : [],
      plugins: curve ? [hereLine(data.times[data.factors.indexOf(1)])] : data.audits ? [whiskers(data.audits)] : [],
    };
    new uPlot(options, [data.times, ...data.series.map((one) => one.values)], place);
  };

  const drawAll = () => document.querySelectorAll("figure.chart").forEach(draw);

  const slider = () => {
    const input = document.getElementById("factor");
    if (!input) return;
    const data = JSON.parse(document.querySelector("figure.chart[data-chart]").dataset.chart);
    const answer = document.getElementById("answer"), use = document.getElementById("use-budget");
    const here = data.factors.indexOf(1), at = (series, factor) => {
      const k = Math.min(Math.max(data.factors.findIndex((f) => f >= factor - 1e-9), 1), data.factors.length - 1);
      const share = Math.log(factor / data.factors[k - 1]) / Math.log(data.factors[k] / data.factors[k - 1]);
      const values = data.series[series].values;
      return values[k - 1] + Math.min(Math.max(share, 0), 1) * (values[k] - values[k - 1]);
    };
    const say = () => {
      const factor = Number((10 ** (input.value / 100)).toPrecision(2)), budget = data.times[here] * factor, fresh = at(2, factor);
      const more = 100 * (fresh - data.series[2].values[here]);
      const words = `${factor < 10 ? factor.toFixed(factor < 1 ? 2 : 1) : factor.toFixed(0)} times the budget`;
      answer.textContent = `${words}, ${whole(budget)} requests a day: freshness ${percent(fresh)} (${percent(at(0, factor))} to ${percent(at(1, factor))}), ${more >= 0 ? "+" : "−"}${Math.abs(more).toFixed(1)} points.`;
      input.setAttribute("aria-valuetext", words);
      if (use) use.href = `/settings?times=${factor}`;
    };
    input.addEventListener("input", say);
    say();
  };

  const feed = () => {
    const button = document.getElementById("feed-pause");
    if (!button) return;
    let paused = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(paused));
      button.textContent = paused ? "Resume" : "Pause";
    });
    document.body.addEventListener("htmx:beforeRequest", (event) => {
      if (paused || document.getElementById("feed").contains(document.activeElement)) event.preventDefault();
    });
    document.body.addEventListener("htmx:afterSwap", () => {
      const empty = document.getElementById("feed-empty");
      if (empty && document.querySelector(".feed-list li")) empty.remove();
    });
  };

  const lost = () => {
    const say = (text) => {
      let note = document.getElementById("lost");
      if (!note && text) {
        note = Object.assign(document.createElement("p"), { id: "lost", className: "warning" });
        note.setAttribute("role", "alert");
        document.querySelector("main").prepend(note);
      }
      if (note) text ? (note.textContent = text) : note.remove();
    };
    for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
      document.body.addEventListener(name, () => say("The crawl does not answer. The figures below are from before."));
    }
    document.body.addEventListener("htmx:afterOnLoad", () => say(""));
  };

  document.addEventListener("DOMContentLoaded", () => {
    drawAll();
    slider();
    feed();
    lost();
    document.body.addEventListener("htmx:afterSettle", (event) => {
      if (event.detail.elt.id !== "main") return; // figures that were being computed are there
      drawAll();
      slider();
    });
    const preview = document.querySelector(".preview");
    if (preview) preview.focus();
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const box = document.getElementById("q");
      if (box) {
        event.preventDefault();
        box.focus();
      }
    }
  });
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
