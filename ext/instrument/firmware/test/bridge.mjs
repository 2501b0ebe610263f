// SPDX-License-Identifier: MIT
// The emulated instrument for a program on this machine: its serial line over a TCP port of this host, its pins at a scripted answerer.
//
//   node bridge.mjs '{"delays": [1000, 2000], "distances": null}'
//
// `delays`: of the answers, in ticks, in turn; null for no answer. `distances`: the answer line is toggled at these instead, in turn, from
// the start of a run on. `slave`: [host, port] of a slave that waits at udp:HOST:PORT: it, and no script, answers each stimulus. `toggled`: a master
// at udp:127.0.0.1:PORT toggles the answer line; the second port that is printed is that one. A datagram is then the wire.
// Prints the port; serves one connection after the other, as a cable that is plugged in and out; ends with stdin.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

import { GPIOPinState } from 'rp2040js';
import { Emulator, TICKS_PER_SECOND } from './emulator.mjs';

const script = { delays: [1000], distances: null, slave: null, toggled: false, stimulusPin: 2, answerPin: 3, ...JSON.parse(process.argv[2] ?? '{}') };
const UF2 = process.env.RTGAUGE_FIRMWARE ?? new URL('../../../../build-firmware/rtgauge-instrument.uf2', import.meta.url).pathname;
const overWire = script.slave || script.toggled;
// An answer that comes from outside is looked for after each slice.
const SLICE = TICKS_PER_SECOND / (overWire ? 20_000 : 500);

const emulator = new Emulator(UF2);
let socket = null;
let level = false;
let stimuli = 0;
let running = false;

emulator.onPin = (pin, state, cycle) => {
  if (pin !== script.stimulusPin) return;
  const driven = state === GPIOPinState.High || state === GPIOPinState.Low;
  if (!driven || (state === GPIOPinState.High) === level) return;
  level = state === GPIOPinState.High;
  if (script.slave) return wire.send(datagram(2n * BigInt(stimuli++) + (level ? 1n : 0n)), script.slave[1], script.slave[0]);
  const delay = script.delays[stimuli++ % script.delays.length];
  if (delay !== null && !script.distances) emulator.drive(script.answerPin, level, cycle + delay);
};

// A datagram of rtgauge's signal path: its mark and its number, here even for low and odd for high (ext/signal/README.md).
const MARK = Buffer.from('rtgauge1');
const OVER = -2n;
const datagram = (number) => {
  const bytes = Buffer.alloc(16);
  MARK.copy(bytes);
  bytes.writeBigInt64BE(number, 8);
  return bytes;
};
// One a slice: of two in the same instant the board would see nothing.
const arrived = [];
const wire = createSocket('udp4', (bytes) => {
  if (bytes.length !== 16 || !bytes.subarray(0, 8).equals(MARK)) return;
  const number = bytes.readBigInt64BE(8);
  if (number === OVER) return;
  arrived.push((number & 1n) === 1n);
});
wire.on('error', () => {});

let toggles = 0;
let high = false;
function toggle() {
  high = !high;
  emulator.applyLevel(emulator.rp2040.gpio[script.answerPin], high);
  emulator.at(emulator.cycle + script.distances[toggles++ % script.distances.length], toggle);
}

emulator.host.onData = (bytes) => socket?.write(bytes);
emulator.runFor(0.05);
emulator.host.connect();
emulator.runFor(1, () => emulator.host.configured);
emulator.host.read(false);
if (script.distances) toggle();

const server = createServer((connection) => {
  socket?.destroy();
  socket = connection;
  connection.setNoDelay(true);
  connection.on('data', (bytes) => emulator.host.write(bytes));
  connection.on('close', () => {
    if (socket === connection) {
      socket = null;
      emulator.host.read(false);
    }
  });
  connection.on('error', () => {});
  emulator.host.read(true);
  if (!running) {
    running = true;
    begin = performance.now() - (emulator.cycle / TICKS_PER_SECOND) * 1000;
    slice();
  }
});

// Emulated time follows the wall clock where the emulation is fast enough, and never runs ahead of it.
let begin = 0;
function slice() {
  const ahead = (emulator.cycle / TICKS_PER_SECOND) * 1000 - (performance.now() - begin);
  if (ahead > 2) return setTimeout(slice, ahead);
  if (ahead < -100) begin += -ahead; // it could not keep up: the time is lost
  if (!socket || socket.writableLength < 65536) {
    emulator.host.read(socket !== null);
    if (arrived.length) emulator.applyLevel(emulator.rp2040.gpio[script.answerPin], arrived.shift());
    emulator.run(emulator.cycle + SLICE);
  } else emulator.host.read(false);
  setImmediate(slice);
}

process.stdin.on('end', () => process.exit(0)).resume();
wire.bind(0, '127.0.0.1', () => server.listen(0, '127.0.0.1', () => console.log(server.address().port, wire.address().port)));
