// SPDX-License-Identifier: MIT
// The host's side of docs/formats/instrument.md, written a second time, so that firmware and host do not share a mistake.
import { crc32 } from 'node:zlib';
import { Emulator, TICKS_PER_SECOND } from './emulator.mjs';

export const TYPE = { IDENTIFY: 1, CONFIGURE: 2, START: 3, STOP: 4, DUMP: 5, STATE: 6, BOOTLOADER: 7 };
export const ANSWER = { STATE: 0x86, SUMMARY: 0x90, BINS: 0x91, OUTLIERS: 0x92, EVENTS: 0xa0, REFUSED: 0xff };
export const MODE = { RESPONSE: 1, PERIODIC: 2, LOOPBACK: 3 };
const COUNTERS = ['now', 'stimuli', 'answers', 'missed', 'late', 'extra', 'edges', 'glitches', 'voided', 'edgesLost', 'eventsDropped'];

function crcOf(bytes) {
  if (crc32) return crc32(bytes) >>> 0;
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

export function encode(type, token, sequence, body = Buffer.alloc(0)) {
  const raw = Buffer.concat([Buffer.from([type, token, sequence & 0xff, (sequence >> 8) & 0xff]), body, Buffer.alloc(4)]);
  raw.writeUInt32LE(crcOf(raw.subarray(0, -4)), raw.length - 4);
  const out = [0];
  let code = 0;
  for (const byte of raw) {
    if (byte === 0) {
      out[code] = out.length - code;
      code = out.length;
      out.push(0);
    } else out.push(byte);
  }
  out[code] = out.length - code;
  out.push(0);
  return Buffer.from(out);
}

export function decode(encoded) {
  const raw = [];
  for (let at = 0; at < encoded.length; ) {
    const code = encoded[at];
    if (code === 0 || at + code > encoded.length) return null;
    for (let i = 1; i < code; i++) raw.push(encoded[at + i]);
    at += code;
    if (at < encoded.length && code < 255) raw.push(0);
  }
  const bytes = Buffer.from(raw);
  if (bytes.length < 8 || crcOf(bytes.subarray(0, -4)) !== bytes.readUInt32LE(bytes.length - 4)) return null;
  return { type: bytes[0], token: bytes[1], sequence: bytes.readUInt16LE(2), body: bytes.subarray(4, -4) };
}

export function configuration(wanted = {}) {
  const c = {
    mode: MODE.RESPONSE, edges: 0, answer: 0, timing: 1, flags: 1, stimulusPin: 2, answerPin: 3, pull: 0,
    periodMin: 1000, periodMax: 2000, limit: 125_000_000, nominal: 0, count: 0, seed: 1, ...wanted,
  };
  const body = Buffer.alloc(36);
  [c.mode, c.edges, c.answer, c.timing, c.flags, c.stimulusPin, c.answerPin, c.pull].forEach((value, i) => body.writeUInt8(value, i));
  [c.periodMin, c.periodMax, c.limit, c.nominal].forEach((value, i) => body.writeUInt32LE(value, 8 + 4 * i));
  body.writeBigUInt64LE(BigInt(c.count), 24);
  body.writeUInt32LE(c.seed, 32);
  return body;
}

export class Client {
  constructor(uf2, options) {
    this.emulator = new Emulator(uf2, options);
    this.frames = [];
    this.damaged = 0;
    this.sequence = 0;
    this.token = 0;
    this.received = null; // the device's last sequence number
    this.gaps = 0;
    this.events = null; // set to [] to keep them
    this.eventsSeen = 0;
    this.eventsMissing = 0;
    this.onEvent = null;
    this.partial = Buffer.alloc(0);
    this.emulator.host.onData = (bytes) => this.receive(bytes);
  }

  receive(bytes) {
    this.partial = Buffer.concat([this.partial, bytes]);
    for (;;) {
      const end = this.partial.indexOf(0);
      if (end < 0) return;
      const frame = decode(this.partial.subarray(0, end));
      this.partial = this.partial.subarray(end + 1);
      if (!frame) {
        this.damaged++;
        continue;
      }
      if (this.received !== null && frame.sequence !== ((this.received + 1) & 0xffff)) this.gaps++;
      this.received = frame.sequence;
      if (frame.type === ANSWER.EVENTS) this.takeEvents(frame.body);
      else this.frames.push(frame);
      if (frame.type === ANSWER.STATE) this.lastState = this.stateOf(frame);
    }
  }

  takeEvents(body) {
    const first = body.readUInt32LE(0);
    let time = body.readBigUInt64LE(4);
    if (first !== this.eventsSeen + this.eventsMissing) this.eventsMissing += (first - this.eventsSeen - this.eventsMissing) >>> 0;
    for (let at = 12; at < body.length; at += 4) {
      const word = body.readUInt32LE(at);
      time += BigInt(word >>> 4);
      this.eventsSeen++;
      const event = { time, answer: Boolean(word & 1), high: Boolean(word & 2), single: Boolean(word & 4), accepted: Boolean(word & 8) };
      this.onEvent?.(event);
      this.events?.push(event);
    }
  }

  connect() {
    this.emulator.runFor(0.05);
    this.emulator.host.connect();
    if (!this.emulator.runFor(1, () => this.emulator.host.configured)) throw new Error('the host could not enumerate the device');
  }

  /** Sends a command and runs until its answer; throws where it was refused. */
  command(type, body, seconds = 2) {
    const token = (this.token = (this.token % 255) + 1);
    const answers = (frame) => frame.token === token && (frame.type === (0x80 | type) || frame.type === ANSWER.REFUSED);
    let answer;
    this.emulator.host.write(encode(type, token, this.sequence++, body));
    let seen = 0;
    const arrived = () => {
      for (; seen < this.frames.length; seen++) if (answers(this.frames[seen])) answer = this.frames[seen];
      return answer !== undefined;
    };
    if (!this.emulator.runFor(seconds, arrived)) throw new Error(`no answer to command ${type}`);
    if (answer.type === ANSWER.REFUSED) throw new Error(`refused: ${answer.body.toString()}`);
    return answer;
  }

  start(wanted) {
    this.command(TYPE.CONFIGURE, configuration(wanted));
    this.eventsSeen = 0;
    this.eventsMissing = 0;
    this.lastState = undefined;
    this.command(TYPE.START);
    // The stimulus line's level and the time base are set within some us of the command.
    this.startCycle = this.emulator.cycle;
  }

  stateOf(frame) {
    const state = { run: frame.body[0], mode: frame.body[1] };
    COUNTERS.forEach((name, i) => (state[name] = Number(frame.body.readBigUInt64LE(4 + 8 * i))));
    state.captureRestarts = frame.body.readUInt32LE(92);
    state.framesDamaged = frame.body.readUInt32LE(96);
    return state;
  }

  state() {
    return this.stateOf(this.command(TYPE.STATE));
  }

  stop() {
    this.command(TYPE.STOP);
  }

  dump() {
    const from = this.frames.length;
    this.command(TYPE.DUMP, undefined, 10);
    const result = { bins: new Map(), outliers: [] };
    for (const { type, body } of this.frames.slice(from)) {
      if (type === ANSWER.SUMMARY) {
        ['count', 'min', 'max', 'sum'].forEach((name, i) => (result[name] = Number(body.readBigInt64LE(8 * i))));
        result.squares = body.readBigUInt64LE(32) + (body.readBigUInt64LE(40) << 64n);
      } else if (type === ANSWER.BINS) {
        for (let at = 0; at < body.length; at += 10) {
          const bin = body.readUInt16LE(at);
          result.bins.set(bin & 0x8000 ? -(bin & 0x7fff) - 1 : bin, Number(body.readBigUInt64LE(at + 2)));
        }
      } else if (type === ANSWER.OUTLIERS) {
        for (let at = 0; at < body.length; at += 24)
          result.outliers.push({ value: Number(body.readBigInt64LE(at)), time: Number(body.readBigUInt64LE(at + 8)), index: Number(body.readBigUInt64LE(at + 16)) });
      }
    }
    return result;
  }
}

/** Runs until the measurement has finished by itself. */
export function runToEnd(client, seconds) {
  const done = () => client.lastState && client.lastState.run === 2;
  if (!client.emulator.runFor(seconds, done)) throw new Error(`not finished after ${seconds} s: ${JSON.stringify(client.state())}`);
}

/** The bin of a magnitude, as docs/formats/instrument.md has it. */
export function binOf(magnitude) {
  let octave = 0;
  for (let rest = magnitude; rest >= 512; rest = Math.floor(rest / 2)) octave++;
  return 256 * octave + Math.floor(magnitude / 2 ** octave);
}

export { TICKS_PER_SECOND };
