// SPDX-License-Identifier: MIT
// The tire after a step, on the live page: a frame is nine numbers and the nodes' positions (docs/live.md).
"use strict";
views.tire = {
  heading: "The tire",
  label: "the tire as it moves",
  frame: null, first: 0, got: 0, radius: 0, droppedBefore: 0,

  begin() {
    Object.assign(this, {frame: null, first: 0, got: 0, radius: 0});
  },

  take(buffer) {
    const numbers = 9;
    const [number, step, time_s, every, copy_us, dropped, late, x, y] = new Float64Array(buffer, 0, numbers);
    const nodes = new Float32Array(buffer, 8 * numbers);
    if (!this.frame || step < this.frame.step) Object.assign(this, {radius: 0, first: number, got: 0, droppedBefore: dropped});
    this.got += 1;
    this.frame = {number, step, time_s, every, copy_us, dropped, late, x, y, nodes};
  },

  draw(canvas, rate) {
    const {number, step, every, copy_us, dropped, late, x, y, nodes} = this.frame, count = nodes.length / 2;
    const scale = devicePixelRatio || 1;
    const width = canvas.width = canvas.clientWidth * scale, height = canvas.height = canvas.clientHeight * scale;
    if (!this.radius) {
      for (let i = 0; i < count; i++) this.radius += Math.hypot(nodes[2 * i], nodes[2 * i + 1]) / count;
    }
    // The view follows it to the side; upwards and downwards only where it would leave it.
    const r = this.radius, metre = height / (4.5 * r);
    const bottom = Math.min(Math.max(-0.3 * r, y - 3.2 * r), y - 1.4 * r);
    const right = (metres) => width / 2 + metres * metre, up = (metres) => height - (metres - bottom) * metre;
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const ctx = canvas.getContext("2d");
    ctx.strokeStyle = colour("--line");
    ctx.lineWidth = scale;
    ctx.beginPath();
    ctx.moveTo(0, up(0));
    ctx.lineTo(width, up(0));
    // marks on the floor, a radius apart, show how it rolls
    for (let mark = Math.ceil((x - width / 2 / metre) / r); right(mark * r - x) < width; mark++) {
      ctx.moveTo(right(mark * r - x), up(0));
      ctx.lineTo(right(mark * r - x) - 8 * scale, up(0) + 8 * scale);
    }
    ctx.stroke();
    // A smooth curve through the nodes, a circle where they lie on one: the handles of an arc of a count-th of a circle.
    const handle = count > 3 ? 2 / 3 * Math.tan(Math.PI / 2 / count) / Math.sin(2 * Math.PI / count) : 1 / 6;
    const ring = (part) => {
      const node = (i, axis) => nodes[2 * ((i + count) % count) + axis] * part;
      const control = (i, towards) => [0, 1].map((axis) => node(i, axis) + towards * (node(i + 1, axis) - node(i - 1, axis)) * handle);
      const place = ([px, py]) => [right(px), up(Math.max(0, y + py))];
      ctx.moveTo(...place([node(0, 0), node(0, 1)]));
      for (let i = 0; i < count; i++) {
        ctx.bezierCurveTo(...place(control(i, 1)), ...place(control(i + 1, -1)), ...place([node(i + 1, 0), node(i + 1, 1)]));
      }
      ctx.closePath();
    };
    ctx.beginPath();
    ring(1);
    ring(0.72);
    ctx.fillStyle = colour("--ink");
    ctx.fill("evenodd");
    ctx.beginPath();
    ring(0.68);
    ring(0.6);
    for (let spoke = 0; spoke < 5; spoke++) {
      const i = Math.floor(spoke * count / 5);
      ctx.moveTo(right(0), up(y));
      ctx.lineTo(right(nodes[2 * i] * 0.64), up(y + nodes[2 * i + 1] * 0.64));
    }
    ctx.strokeStyle = colour("--bar");
    ctx.lineWidth = 3 * scale;
    ctx.stroke();
    const lost = number - this.first + 1 - this.got;
    const shown = every > 1 ? `1 of ${every} nodes is shown` : "all nodes are shown";
    return `${(step / 100).toFixed(2)} s simulated · ${rate.toFixed(0)} frames a second · ${shown} · dropped: ` +
      `${whole(dropped - this.droppedBefore)} by the machine that computes, ${whole(lost)} on the way here · ` +
      `a copy took ${copy_us.toFixed(1)} us, ${whole(late)} ended after the next release`;
  },
};
