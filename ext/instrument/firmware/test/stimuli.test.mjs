// SPDX-License-Identifier: MIT
// Stimuli with delays from 0 to seconds: every latency right to the tick, on the device and in the stream. 100,000 of them: RTGAUGE_STIMULI=100000.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Answerer, latenciesOf, random } from './answerer.mjs';
import { Client, binOf, runToEnd, TICKS_PER_SECOND } from './client.mjs';

const UF2 = process.env.RTGAUGE_FIRMWARE ?? new URL('../../../../build-firmware/rtgauge-instrument.uf2', import.meta.url).pathname;
const COUNT = Number(process.env.RTGAUGE_STIMULI ?? 10_000);

/** Mostly up to 20 us; every 20th up to 10 ms, every 2,000th up to 3 s, spread evenly over the orders of magnitude; and 0. */
function scriptedDelays(count) {
  const draw = random(2010);
  return Array.from({ length: count }, (_, i) => {
    if (i % 50 === 7) return 0;
    const longest = i % 2_000 === 1_999 ? 3 * TICKS_PER_SECOND : i % 20 === 13 ? TICKS_PER_SECOND / 100 : 2_500;
    return Math.floor(Math.exp(draw() * Math.log(longest)));
  });
}

test(`${COUNT} stimuli with delays from 0 to seconds`, { timeout: 600_000 }, () => {
  const client = new Client(UF2);
  client.connect();
  client.events = [];
  const delays = scriptedDelays(COUNT);
  delays[123] = 3 * TICKS_PER_SECOND; // the longest there is
  new Answerer(client, (i) => delays[i]);
  client.start({ periodMin: 375, periodMax: 2_500, limit: 5 * TICKS_PER_SECOND, count: COUNT });
  runToEnd(client, 600);
  const latencies = latenciesOf(client.events);
  assert.equal(latencies.length, COUNT);
  for (let i = 0; i < COUNT; i++) if (latencies[i] !== delays[i]) assert.fail(`stimulus ${i}: ${latencies[i]} for ${delays[i]}`);

  const state = client.state();
  assert.deepEqual(
    [state.stimuli, state.answers, state.missed, state.late, state.extra, state.glitches, state.edgesLost, state.eventsDropped],
    [COUNT, COUNT, 0, 0, 0, 0, 0, 0],
  );
  const dump = client.dump();
  assert.deepEqual([dump.count, dump.min, dump.max], [COUNT, 0, 3 * TICKS_PER_SECOND]);
  assert.equal(dump.sum, delays.reduce((sum, delay) => sum + delay));
  assert.equal(dump.squares, delays.reduce((sum, delay) => sum + BigInt(delay) ** 2n, 0n));
  const bins = new Map();
  for (const delay of delays) bins.set(binOf(delay), (bins.get(binOf(delay)) ?? 0) + 1);
  assert.deepEqual(new Map([...dump.bins].sort((a, b) => a[0] - b[0])), new Map([...bins].sort((a, b) => a[0] - b[0])));
  const largest = delays.map((value, index) => ({ value, index })).sort((a, b) => b.value - a.value).slice(0, 32);
  assert.deepEqual(dump.outliers.map(({ value, index }) => ({ value, index })).sort((a, b) => b.value - a.value || a.index - b.index), largest);
  const stimuli = client.events.filter((event) => !event.answer);
  for (const { index, time } of dump.outliers) assert.equal(time, Number(stimuli[index].time));
  assert.deepEqual([client.gaps, client.damaged, client.eventsMissing], [0, 0, 0]);
});
