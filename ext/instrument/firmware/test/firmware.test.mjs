// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { Answerer, drivePeriodic, latenciesOf, random } from './answerer.mjs';
import { Client, MODE, TYPE, configuration, encode, runToEnd, TICKS_PER_SECOND } from './client.mjs';
import { flashOfUf2 } from './emulator.mjs';

const UF2 = process.env.RTGAUGE_FIRMWARE ?? new URL('../../../../build-firmware/rtgauge-instrument.uf2', import.meta.url).pathname;
const MS = TICKS_PER_SECOND / 1000;

/** Where the firmware has a variable. */
function addressOf(name) {
  const symbols = execFileSync('arm-none-eabi-nm', [UF2.replace(/uf2$/, 'elf')], { encoding: 'utf8' });
  const line = symbols.split('\n').find((entry) => entry.endsWith(` ${name}`));
  return parseInt(line, 16);
}

function connected(options) {
  const client = new Client(UF2, options);
  client.connect();
  client.events = [];
  return client;
}

test('the image has the checksum that the boot ROM wants', () => {
  const flash = flashOfUf2(UF2);
  let crc = 0xffffffff;
  for (const byte of flash.subarray(0, 252)) {
    crc = (crc ^ (byte << 24)) >>> 0;
    for (let i = 0; i < 8; i++) crc = (crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1) >>> 0;
  }
  assert.equal(flash.readUInt32LE(252), crc);
  assert.ok(flash.readUInt32LE(256) > 0x20000000 && flash.readUInt32LE(256) <= 0x20042000, 'stack');
});

test('a host enumerates it as a serial line, by the flash chip\'s id, and it says who it is', () => {
  const client = connected();
  const { host } = client.emulator;
  assert.equal(host.serial, 'E6605838831F2B27');
  assert.equal(host.device.readUInt16LE(8), 0x1209);
  assert.equal(host.descriptors.length, host.descriptors.readUInt16LE(2));
  const { body } = client.command(TYPE.IDENTIFY);
  assert.equal(body.readUInt16LE(0), 1);
  assert.equal(body.readUInt16LE(2), configuration().length);
  assert.equal(body.readUInt32LE(4), TICKS_PER_SECOND);
  assert.equal(body.subarray(8, 16).toString('hex').toUpperCase(), host.serial);
  assert.equal(body.subarray(16).toString(), 'rtgauge instrument 1.0');
});

test('with a fixed period every stimulus comes exactly one period after the other, and every answer is right to the tick', () => {
  const client = connected();
  const delays = [0, 1, 2, 5, 6, 7, 8, 100, 9999];
  new Answerer(client, (i) => delays[i % delays.length]);
  client.start({ timing: 0, periodMin: 12_345, periodMax: 12_345, limit: 12_000, count: 500 });
  runToEnd(client, 5);
  const stimuli = client.events.filter((event) => !event.answer).map((event) => Number(event.time));
  assert.equal(stimuli.length, 500);
  for (let i = 1; i < stimuli.length; i++) assert.equal(stimuli[i] - stimuli[i - 1], 12_345);
  assert.deepEqual(latenciesOf(client.events), Array.from({ length: 500 }, (_, i) => delays[i % delays.length]));
  assert.equal(client.gaps + client.damaged + client.eventsMissing, 0);
});

test('random gaps are within their bounds, differ, and are the same for the same seed', () => {
  const gaps = [7, 7, 8].map((seed) => {
    const client = connected();
    new Answerer(client, () => 500);
    client.start({ periodMin: 5_000, periodMax: 50_000, count: 300, seed });
    runToEnd(client, 5);
    const stimuli = client.events.filter((event) => !event.answer).map((event) => Number(event.time));
    return stimuli.slice(1).map((time, i) => time - stimuli[i] - 500);
  });
  for (const gap of gaps[0]) assert.ok(gap >= 5_000 && gap < 50_000 + 10_000, `${gap}`); // and some us until the answer is seen
  assert.ok(new Set(gaps[0]).size > 250);
  assert.ok(gaps[0].every((gap, i) => Math.abs(gap - gaps[1][i]) < 1_000));
  assert.ok(gaps[0].some((gap, i) => Math.abs(gap - gaps[2][i]) > 1_000));
});

for (const [name, edges, level, first] of [['falling', 2, true, false], ['rising', 1, false, true]]) {
  test(`${name} edges alone are stimuli; the line goes back once it is answered, and that is no sample`, () => {
    for (const timing of [0, 1]) {
      const client = connected();
      new Answerer(client, (i, high) => (high === first ? 300 + i : 7), { level });
      client.start({ edges, timing, periodMin: 20_000, periodMax: 20_000, limit: 9_000, count: 40 });
      runToEnd(client, 5);
      assert.deepEqual(latenciesOf(client.events, (event) => event.high === first), Array.from({ length: 40 }, (_, i) => 300 + 2 * i));
      const state = client.state();
      assert.deepEqual([state.stimuli, state.answers, state.missed, state.extra], [40, 40, 0, 0], `timing ${timing}`);
    }
  });
}

test('a machine that answers with a pulse: any edge is an answer, the next one is extra', () => {
  const client = connected();
  const reply = (emulator, pin, cycle) => {
    emulator.drive(pin, true, cycle);
    emulator.drive(pin, false, cycle + 50);
  };
  new Answerer(client, () => 1_000, { reply });
  client.start({ answer: 1, periodMin: 5_000, periodMax: 6_000, count: 100 });
  runToEnd(client, 5);
  assert.deepEqual(latenciesOf(client.events), Array(100).fill(1_000));
  assert.deepEqual([client.state().answers, client.state().extra], [100, client.events.filter((e) => e.answer && !e.accepted).length]);
});

test('no answer within the limit is a missed one; one that comes later is late, and not that of the next stimulus', () => {
  for (const timing of [0, 1]) {
    const client = connected();
    // The third of five has no answer, the fourth comes after the limit.
    const delays = [100, 100, null, 12_000, 100];
    new Answerer(client, (i) => delays[i % 5]);
    client.start({ timing, periodMin: 20_000, periodMax: 20_000, limit: 10_000, count: 100 });
    runToEnd(client, 5);
    client.emulator.runFor(0.01);
    const state = client.state();
    // Where the third has none, the line stays, and there is no edge for the fourth to make: it is missed as well, on time or not.
    assert.deepEqual(latenciesOf(client.events), Array.from({ length: 100 }, (_, i) => [100, 100, null, null, 100][i % 5]), `timing ${timing}`);
    assert.deepEqual([state.stimuli, state.answers, state.missed], [100, 60, 40]);
  }
  const client = connected();
  new Answerer(client, (i) => (i % 4 === 2 ? 15_000 : 100));
  client.start({ timing: 0, periodMin: 40_000, periodMax: 40_000, limit: 10_000, count: 100 });
  runToEnd(client, 5);
  const state = client.state();
  assert.deepEqual([state.answers, state.missed, state.late, state.extra], [75, 25, 25, 0]);
});

test('an answer exactly at the limit counts, one a tick later is missed', () => {
  const client = connected();
  new Answerer(client, (i) => (i % 2 ? 10_001 : 10_000));
  client.start({ timing: 0, periodMin: 30_000, periodMax: 30_000, limit: 10_000, count: 60 });
  runToEnd(client, 5);
  assert.deepEqual([client.state().answers, client.state().missed, client.state().late], [30, 30, 30]);
});

test('PERIODIC: every distance to the tick, against the nominal one, with the largest and their times', () => {
  const client = connected();
  const draw = random(3);
  const distances = Array.from({ length: 2_000 }, (_, i) => (i === 700 ? 90_000 : i === 701 ? 20_000 : 50_000 + Math.floor(draw() * 400) - 200));
  client.start({ mode: MODE.PERIODIC, nominal: 50_000, count: 2_000 });
  const cycles = drivePeriodic(client.emulator, 3, distances);
  runToEnd(client, 20);
  const times = client.events.map((event) => Number(event.time));
  assert.deepEqual(times.slice(1).map((time, i) => time - times[i]), distances);
  const dump = client.dump();
  const deviations = distances.map((distance) => distance - 50_000);
  assert.equal(dump.count, 2_000);
  assert.equal(dump.min, -30_000);
  assert.equal(dump.max, 40_000);
  assert.equal(dump.sum, deviations.reduce((a, b) => a + b));
  assert.equal(dump.squares, deviations.reduce((sum, value) => sum + BigInt(value) ** 2n, 0n));
  assert.equal([...dump.bins.values()].reduce((a, b) => a + b), 2_000);
  const outlier = dump.outliers.find((entry) => entry.value === 40_000);
  assert.equal(outlier.index, 700);
  assert.equal(outlier.time - times[0], cycles[701] - cycles[0]);
  assert.equal(dump.outliers.length, 32);
});

test('PERIODIC with falling edges alone measures whole periods', () => {
  const client = connected();
  client.start({ mode: MODE.PERIODIC, edges: 2, nominal: 0, count: 50 });
  drivePeriodic(client.emulator, 3, Array(200).fill(0).map((_, i) => (i % 2 ? 3_000 : 2_000)));
  runToEnd(client, 5);
  assert.deepEqual([client.dump().min, client.dump().max], [5_000, 5_000]);
});

test('100,000 edges a second for a second are counted and streamed, none lost', { timeout: 120_000 }, () => {
  const client = connected();
  client.start({ mode: MODE.PERIODIC, nominal: 1_250, count: 0 });
  drivePeriodic(client.emulator, 3, Array(99_999).fill(1_250));
  client.emulator.runFor(1.05);
  const state = client.state();
  assert.deepEqual([state.edges, state.edgesLost, state.eventsDropped, state.captureRestarts], [100_000, 0, 0, 0]);
  client.emulator.runFor(0.05);
  assert.equal(client.events.length, 100_000);
  assert.deepEqual([client.gaps, client.damaged, client.eventsMissing], [0, 0, 0]);
  const dump = client.dump();
  assert.deepEqual([dump.count, dump.min, dump.max], [99_999, 0, 0]);
});

test('a burst of 1,000 edges, 10 ticks apart, is in the rings and then in the stream', () => {
  const client = connected();
  client.start({ mode: MODE.PERIODIC, nominal: 10, count: 999 });
  drivePeriodic(client.emulator, 3, Array(999).fill(10));
  runToEnd(client, 5);
  const times = client.events.map((event) => Number(event.time));
  assert.equal(times.length, 1_000);
  assert.ok(times.slice(1).every((time, i) => time - times[i] === 10));
});

test('more edges than the rings take: the loss is counted, and what comes after is right', () => {
  const client = connected();
  client.start({ mode: MODE.PERIODIC, nominal: 10, count: 0 });
  drivePeriodic(client.emulator, 3, Array(20_000).fill(8));
  client.emulator.runFor(0.02);
  const during = client.state();
  assert.ok(during.captureRestarts > 0);
  assert.ok(during.edgesLost > 0);
  // A restart finds the line at some level; from then on nothing is missing.
  client.events = [];
  const { edges } = during;
  const distances = Array.from({ length: 500 }, (_, i) => 2_000 + i);
  const high = client.emulator.rp2040.gpio[3].inputValue;
  drivePeriodic(client.emulator, 3, distances, { level: high });
  client.emulator.runFor(0.05);
  assert.equal(client.state().edges - edges, 501);
  assert.equal(client.state().captureRestarts, during.captureRestarts);
  const times = client.events.map((event) => Number(event.time));
  assert.deepEqual(times.slice(1).map((time, i) => time - times[i]), distances);
});

test('a storm on the answer line while stimuli go out: what was lost is void, and the stimuli go on', () => {
  const client = connected();
  new Answerer(client, () => 1_000);
  client.start({ periodMin: 10_000, periodMax: 20_000, limit: MS });
  client.emulator.runFor(0.01);
  drivePeriodic(client.emulator, 3, Array(20_001).fill(8), { level: client.emulator.rp2040.gpio[3].inputValue });
  client.emulator.runFor(0.02);
  const storm = client.state();
  assert.ok(storm.captureRestarts > 0);
  client.emulator.runFor(0.05);
  const after = client.state();
  assert.ok(after.answers > storm.answers + 100, `${after.answers} after ${storm.answers}`);
  assert.equal(after.captureRestarts, storm.captureRestarts);
  assert.ok(Math.abs(after.stimuli - after.answers - after.missed - after.voided) <= 1, JSON.stringify(after));
});

test('glitches: a pulse of a single tick is seen and marked, wherever it falls', () => {
  const client = connected();
  client.start({ mode: MODE.PERIODIC, nominal: 0, count: 0 });
  const begin = client.emulator.cycle + 1_000;
  const widths = [1, 1, 2, 3, 4, 5, 6, 7, 8, 20];
  widths.forEach((width, i) => {
    client.emulator.drive(3, true, begin + 1_001 * i);
    client.emulator.drive(3, false, begin + 1_001 * i + width);
  });
  client.emulator.runFor(0.05);
  assert.equal(client.events.length, 2 * widths.length);
  const times = client.events.map((event) => Number(event.time));
  widths.forEach((width, i) => {
    assert.equal(times[2 * i] - times[0], 1_001 * i, `begin of ${i}`);
    const seen = times[2 * i + 1] - times[2 * i];
    // An edge within 6 ticks of the one before it is stamped when the state machine looks again.
    if (width >= 6) assert.equal(seen, width);
    else assert.ok(seen >= width && seen <= 7, `${width} seen as ${seen}`);
  });
  assert.deepEqual(client.events.map((event) => event.single), widths.flatMap((width) => [width === 1, width === 1]));
  assert.equal(client.state().glitches, 4);
});

test('a glitch on the answer line is no second answer', () => {
  const client = connected();
  const reply = (emulator, pin, cycle, high) => {
    emulator.drive(pin, high, cycle);
    emulator.drive(pin, !high, cycle + 40);
    emulator.drive(pin, high, cycle + 80);
  };
  new Answerer(client, () => 1_000, { reply });
  client.start({ periodMin: 5_000, periodMax: 6_000, count: 200 });
  runToEnd(client, 5);
  client.emulator.runFor(0.001);
  assert.deepEqual(latenciesOf(client.events), Array(200).fill(1_000));
  assert.deepEqual([client.state().answers, client.state().missed], [200, 0]);
  assert.ok(client.state().extra >= 398);
});

for (const level of [false, true]) {
  test(`a line that is stuck ${level ? 'high' : 'low'}: every stimulus is missed, no edge is made up`, () => {
    const client = connected();
    client.emulator.drive(3, level);
    client.emulator.runFor(0.001);
    client.start({ periodMin: 5_000, periodMax: 6_000, limit: 20_000, count: 100 });
    runToEnd(client, 5);
    const state = client.state();
    assert.deepEqual([state.stimuli, state.answers, state.missed, state.edges], [100, 0, 100, 0]);
    assert.equal(client.dump().count, 0);
    client.start({ mode: MODE.PERIODIC, nominal: 1_000 });
    client.emulator.runFor(0.5);
    assert.equal(client.state().edges, 0);
  });
}

test('LOOPBACK: inside it measures 0 to the tick, over a wire the wire', () => {
  for (const [flags, wire, expected] of [[3, null, 0], [1, 3, 3]]) {
    const client = connected();
    if (wire !== null) new Answerer(client, () => wire);
    client.start({ mode: MODE.LOOPBACK, flags, periodMin: 3_000, periodMax: 5_000, limit: 2_000, count: 1_000 });
    runToEnd(client, 5);
    const dump = client.dump();
    assert.deepEqual([dump.count, dump.min, dump.max], [1_000, expected, expected]);
  }
});

test('a host that does not read: the events it misses are counted, the histogram has them all', () => {
  const client = connected();
  const draw = random(5);
  const delays = Array.from({ length: 20_000 }, () => Math.floor(draw() * 3_000));
  new Answerer(client, (i) => delays[i]);
  client.start({ periodMin: 500, periodMax: 600, count: 20_000 });
  client.emulator.runFor(0.01);
  client.emulator.host.read(false);
  client.emulator.runFor(1.5);
  client.emulator.host.read(true);
  client.emulator.runFor(0.5);
  const state = client.state();
  assert.equal(state.answers, 20_000);
  assert.equal(state.edgesLost, 0);
  assert.ok(state.eventsDropped > 10_000);
  assert.equal(client.eventsSeen + state.eventsDropped, 40_000);
  assert.deepEqual([client.gaps, client.damaged], [0, 0]);
  const dump = client.dump();
  assert.equal(dump.count, 20_000);
  assert.equal(dump.sum, delays.reduce((a, b) => a + b));
});

test('a host that reads slowly gets what fits, and knows what is missing', () => {
  const client = connected();
  client.emulator.host.packetTicks = 2 * MS; // 32 kB a second
  new Answerer(client, () => 1_000);
  client.start({ periodMin: 500, periodMax: 600, count: 20_000 });
  client.emulator.runFor(3);
  client.emulator.host.packetTicks = 6_600;
  client.emulator.runFor(1);
  const state = client.state();
  assert.ok(state.eventsDropped > 0);
  assert.equal(client.eventsSeen + state.eventsDropped, 40_000);
  assert.equal(client.damaged, 0);
});

test('the cable is pulled in the middle of a run and put back: it went on measuring', () => {
  const client = connected();
  new Answerer(client, (i) => 1_000 + (i % 7));
  client.start({ periodMin: 5_000, periodMax: 6_000, count: 10_000 });
  client.emulator.runFor(0.1003);
  client.emulator.host.disconnect();
  client.emulator.runFor(0.3);
  client.emulator.host.connect();
  client.emulator.runFor(1, () => client.emulator.host.configured);
  assert.equal(client.command(TYPE.IDENTIFY).body.readUInt16LE(0), 1);
  assert.ok(client.damaged <= 1, 'at most the frame that was under way');
  client.emulator.runFor(0.5);
  const state = client.state();
  assert.deepEqual([state.run, state.answers, state.missed], [2, 10_000, 0]);
  assert.equal(client.dump().count, 10_000);
});

test('the counts wrap after 68 s: distances and latencies across the wrap are right', () => {
  const client = connected();
  client.start({ mode: MODE.PERIODIC, nominal: 0 });
  client.emulator.runFor(0.01);
  client.emulator.run(client.emulator.cycle + MS, () => client.emulator.idle);
  client.emulator.leap(2 ** 33 - 2 ** 33 % 250 - 250 * 20_000); // 40 ms before the wrap
  const distances = Array.from({ length: 300 }, (_, i) => 31_000 + i); // over 74 ms
  drivePeriodic(client.emulator, 3, distances);
  client.emulator.runFor(0.2);
  const times = client.events.map((event) => Number(event.time));
  assert.ok(times[0] < 2 ** 33 && times.at(-1) > 2 ** 33, `${times[0]} ${times.at(-1)}`);
  assert.deepEqual(times.slice(1).map((time, i) => time - times[i]), distances);
});

test('24 hours later: 64-bit times go on, across many wraps of every 32-bit counter', () => {
  const client = connected();
  new Answerer(client, (i) => 1_000 + i);
  client.start({ periodMin: 20_000, periodMax: 30_000, limit: 10 * MS });
  client.emulator.runFor(0.01);
  const before = client.events.length;
  const day = 24 * 3_600 * TICKS_PER_SECOND;
  for (let hours = 0; hours < 24; hours++) {
    assert.ok(client.emulator.run(client.emulator.cycle + MS, () => client.emulator.idle));
    client.emulator.leap(day / 24);
    client.emulator.runFor(0.02);
  }
  assert.ok(client.events.length > before + 1_000);
  const last = Number(client.events.at(-1).time);
  assert.ok(last > day && last < day + 2 * TICKS_PER_SECOND, `${last}`);
  const state = client.state();
  assert.ok(state.now > day);
  assert.equal(state.captureRestarts, 0);
  const latencies = latenciesOf(client.events);
  const right = latencies.filter((latency, i) => latency === 1_000 + i).length;
  // A stimulus that was under way over a leap has no answer within its limit; the last may have none yet.
  assert.ok(right >= latencies.length - 25, `${right} of ${latencies.length}`);
  let time = -1n;
  for (const event of client.events) {
    assert.ok(event.time >= time);
    time = event.time;
  }
});

test('a DMA channel hands over to the other of its pair without a loss', () => {
  const client = connected();
  client.start({ mode: MODE.PERIODIC, nominal: 2_000, count: 10_000 });
  client.emulator.runFor(0.001);
  // A block is 2^31 words, which take hours: as if all but 4,096 of the first had gone by, for DMA and firmware alike.
  const { rp2040 } = client.emulator;
  const skipped = 2 ** 31 - 4_096;
  const streams = addressOf('streams');
  for (const stream of [2, 3]) {
    assert.equal(rp2040.dma.channels[stream].transCount, 2 ** 31);
    rp2040.dma.channels[stream].transCount -= skipped;
    for (const word of [0, 1, 2]) {
      const address = streams + 20 * stream + 4 * word; // visible, written, read
      assert.equal(rp2040.readUint32(address), 0);
      rp2040.writeUint32(address, skipped);
    }
  }
  const distances = Array.from({ length: 10_000 }, (_, i) => 2_000 + (i % 11));
  drivePeriodic(client.emulator, 3, distances);
  runToEnd(client, 5);
  assert.ok(rp2040.dma.channels[6].transCount < 2 ** 31, 'the second channel moves words');
  assert.deepEqual([client.state().captureRestarts, client.state().edges], [0, 10_001]);
  const times = client.events.map((event) => Number(event.time));
  assert.deepEqual(times.slice(1).map((time, i) => time - times[i]), distances);
});

test('nonsense from the host is refused or passed over, and harms nothing', () => {
  const client = connected();
  const draw = random(9);
  const { host } = client.emulator;
  for (let i = 0; i < 200; i++) host.write(Buffer.from(Array.from({ length: Math.floor(draw() * 300) }, () => Math.floor(draw() * 256))));
  host.write(Buffer.from('AT+GMM\r\n\0'));
  host.write(Buffer.alloc(1000, 1));
  host.write(Buffer.from([0]));
  client.emulator.runFor(0.5);
  const damaged = client.state().framesDamaged;
  assert.ok(damaged > 10);
  const frame = encode(TYPE.IDENTIFY, 9, 1);
  for (let i = 0; i < frame.length - 1; i++) {
    const broken = Buffer.from(frame);
    broken[i] ^= 0x40;
    host.write(broken);
  }
  client.emulator.runFor(0.1);
  assert.ok(client.state().framesDamaged > damaged);
  assert.throws(() => client.command(0x33), /refused: no such command/);
  assert.throws(() => client.command(TYPE.START), /refused/);
  assert.throws(() => client.command(TYPE.CONFIGURE, Buffer.alloc(3)), /another length/);
  for (const [wrong, why] of [
    [{ mode: 4 }, /no such mode/], [{ mode: 0 }, /no such mode/], [{ edges: 3 }, /choice/], [{ timing: 2 }, /choice/], [{ pull: 3 }, /choice/],
    [{ flags: 8 }, /choice/], [{ stimulusPin: 25 }, /pins are/], [{ answerPin: 29 }, /pins are/], [{ answerPin: 2 }, /two pins/],
    [{ periodMin: 3_000 }, /period is out/], [{ periodMin: 15 }, /shorter/], [{ periodMax: 0x80000000 }, /period is out/], [{ limit: 0 }, /limit/],
    [{ timing: 0, limit: 1_000 }, /shorter than the period/],
  ]) assert.throws(() => client.command(TYPE.CONFIGURE, configuration(wrong)), why);
  new Answerer(client, () => 42);
  client.start({ count: 10 });
  runToEnd(client, 1);
  assert.deepEqual(latenciesOf(client.events), Array(10).fill(42));
});

test('stop ends a run; what was measured can be dumped; the next run begins at 0; a run cannot be changed under way', () => {
  const client = connected();
  new Answerer(client, () => 77);
  client.start({ periodMin: 5_000, periodMax: 5_000 });
  client.emulator.runFor(0.05);
  assert.throws(() => client.command(TYPE.CONFIGURE, configuration()), /running/);
  assert.throws(() => client.command(TYPE.START), /running/);
  client.stop();
  const state = client.state();
  assert.equal(state.run, 0);
  const { count, min, max } = client.dump();
  assert.deepEqual([count, min, max], [state.answers, 77, 77]);
  client.emulator.runFor(0.05);
  assert.deepEqual(client.state(), state);
  assert.ok(client.emulator.rp2040.gpio[2].value > 1, 'the stimulus line is let go');
  client.emulator.onPin = undefined;
  new Answerer(client, () => 5, { level: client.emulator.rp2040.gpio[3].inputValue });
  client.start({ count: 20, limit: 1_000 });
  runToEnd(client, 1);
  assert.equal(client.state().stimuli, 20);
});

test('the command for the boot ROM\'s drive calls the ROM function UB', () => {
  const client = connected();
  const { rp2040 } = client.emulator;
  const rom = new DataView(rp2040.bootrom.buffer);
  rom.setUint16(0x14, 0x1000, true);
  rom.setUint16(0x18, 0x2001, true);
  rom.setUint16(0x2000, 0x4b00, true); // ldr r3, [pc]: the function's address, whatever is asked for
  rom.setUint16(0x2002, 0xe001, true); // b over it
  rom.setUint32(0x2004, 0x2011, true);
  rom.setUint16(0x2008, 0x0018, true); // movs r0, r3
  rom.setUint16(0x200a, 0x4770, true); // bx lr
  rom.setUint16(0x2010, 0xe7fe, true); // the function: stays here
  let asked;
  client.emulator.host.write(encode(TYPE.BOOTLOADER, 1, 0));
  const there = client.emulator.runFor(1, () => {
    if (rp2040.core.PC === 0x2000) asked = [rp2040.core.registers[0], rp2040.core.registers[1]];
    return rp2040.core.PC === 0x2010;
  });
  assert.ok(there);
  assert.deepEqual(asked, [0x1000, 'U'.charCodeAt(0) | ('B'.charCodeAt(0) << 8)]);
});
