// SPDX-License-Identifier: MIT
// The instrument: its firmware in an emulated RP2040 (rp2040js), what is wired to its pins, and a USB host.
//
// rp2040js runs core, DMA, timer, USB registers and the instructions of the PIO. This file adds what it leaves to its user:
//  - PIO and core on one clock, cycle by cycle (rp2040js lets the PIO run by itself), and only machines that are enabled;
//  - where the core sleeps and every state machine is in a loop that does nothing but count, time is skipped: each loop is
//    first run once, and skipped only if its registers came back the same but for the counter;
//  - a full-speed USB host that checks the DATA0/DATA1 toggles, and reads and writes as fast or slowly as a test wants;
//  - a pad's input sees its own output, as on the chip.
import { readFileSync } from 'node:fs';
import { RP2040, GPIOPinState, ConsoleLogger, LogLevel } from 'rp2040js';

export const TICKS_PER_SECOND = 125_000_000;
const NS_PER_TICK = 8;
const FLASH_START = 0x10000000;
const BOOT2_RAM = 0x20041f00; // where the boot ROM puts the second stage
const USB_PACKET_TICKS = 6_600; // 53 us: 19 packets of 64 bytes in a frame of 1 ms
const AVAILABLE = 1 << 10;
const STALL = 1 << 11;
const DATA1 = 1 << 13;

/** The flash image in a UF2 file; throws where a block is not as the format has it. */
export function flashOfUf2(path) {
  const file = readFileSync(path);
  const pages = [];
  for (let at = 0; at < file.length; at += 512) {
    const word = (i) => file.readUInt32LE(at + 4 * i);
    if (word(0) !== 0x0a324655 || word(1) !== 0x9e5d5157 || file.readUInt32LE(at + 508) !== 0x0ab16f30) throw new Error('no UF2 block');
    if (word(7) !== 0xe48bff56) throw new Error('not for the RP2040');
    if (word(5) !== at / 512 || word(6) !== file.length / 512) throw new Error('block out of order');
    if (word(3) !== FLASH_START + 256 * pages.length || word(4) !== 256) throw new Error('page out of order');
    pages.push(file.subarray(at + 32, at + 32 + 256));
  }
  return Buffer.concat(pages);
}

/** What happens at a cycle, in order; of two at the same cycle the one that was asked for first. */
class Agenda {
  constructor() {
    this.heap = [];
    this.counter = 0;
  }
  get next() {
    return this.heap.length ? this.heap[0].cycle : Infinity;
  }
  before(a, b) {
    return a.cycle < b.cycle || (a.cycle === b.cycle && a.order < b.order);
  }
  add(cycle, action) {
    const { heap } = this;
    const entry = { cycle, order: this.counter++, action };
    let i = heap.push(entry) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!this.before(entry, heap[parent])) break;
      heap[i] = heap[parent];
      i = parent;
    }
    heap[i] = entry;
    return entry;
  }
  take() {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length) {
      let i = 0;
      for (;;) {
        let child = 2 * i + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && this.before(heap[child + 1], heap[child])) child++;
        if (!this.before(heap[child], last)) break;
        heap[i] = heap[child];
        i = child;
      }
      heap[i] = last;
    }
    return first;
  }
}

const JMP_X_DECREMENT = 2;
const JMP_PIN = 6;
const isJump = (opcode) => opcode >>> 13 === 0 && (opcode & 0x1f00) === 0;
const condition = (opcode) => (opcode >>> 5) & 7;

export class Emulator {
  /** @param uf2 path of the firmware; @param id the flash chip's unique id */
  constructor(uf2, { id = [0xe6, 0x60, 0x58, 0x38, 0x83, 0x1f, 0x2b, 0x27] } = {}) {
    this.cycle = 0; // of the core: where time is
    this.pioCycle = 0; // up to here the PIO has run
    this.agenda = new Agenda();
    this.id = id;
    this.rp2040 = new RP2040();
    this.rp2040.logger = new ConsoleLogger(LogLevel.Error, true);
    this.flash = flashOfUf2(uf2);
    this.rp2040.flash.set(this.flash);
    this.active = []; // state machines that are enabled: [pio, machine]
    this.quietUntil = 0; // the PIO does nothing but count before this cycle
    this.prepareFlashId();
    this.preparePio();
    this.prepareCore();
    this.preparePads();
    this.host = new UsbHost(this);
  }

  // The boot ROM copies the first 252 bytes to RAM and jumps there (datasheet 2.8.1).
  prepareCore() {
    const { core } = this.rp2040;
    this.rp2040.sram.set(this.flash.subarray(0, 252), BOOT2_RAM - 0x20000000);
    core.SP = 0x20041f00;
    core.PC = BOOT2_RAM;
  }

  prepareFlashId() {
    const ssi = this.rp2040.peripherals[0x18000];
    const answer = [];
    let sent = [];
    const { readUint32, writeUint32 } = ssi;
    const XIP = (31 << 16) | (3 << 8); // CTRLR0 as the second stage has it
    ssi.writeUint32 = (offset, value) => {
      if (offset === 0x08) {
        sent = [];
        // As on the chip: nothing can be read from the flash, vectors neither, unless the SSI is set up for it.
        if (value & 1 && ssi.crtlr0 === XIP) this.rp2040.flash.set(this.flash);
        else this.rp2040.flash.fill(0xff);
      }
      if (offset === 0x10) return; // SER
      if (offset === 0x60) {
        sent.push(value & 0xff);
        answer.push(sent[0] === 0x4b && sent.length > 5 ? this.id[sent.length - 6] : 0xff);
        return;
      }
      writeUint32.call(ssi, offset, value);
    };
    ssi.readUint32 = (offset) => {
      if (offset === 0x24) return answer.length;
      if (offset === 0x60) return answer.shift() ?? 0;
      return readUint32.call(ssi, offset);
    };
  }

  preparePio() {
    for (const pio of this.rp2040.pio) {
      pio.run = () => {};
      const { readUint32, writeUint32 } = pio;
      pio.readUint32 = (offset) => {
        this.settle(this.cycle);
        return readUint32.call(pio, offset);
      };
      pio.writeUint32 = (offset, value) => {
        this.settle(this.cycle);
        writeUint32.call(pio, offset, value);
        pio.checkChangedPins();
        this.active = [];
        for (const p of this.rp2040.pio) for (const machine of p.machines) if (machine.enabled) this.active.push([p, machine]);
        this.quietUntil = 0;
      };
      for (const machine of pio.machines) {
        const { readFIFO } = machine;
        machine.readFIFO = () => {
          const value = readFIFO.call(machine);
          if (machine.enabled) this.quietUntil = 0;
          return value;
        };
      }
    }
  }

  preparePads() {
    for (const pin of this.rp2040.gpio) {
      pin.addListener((state) => {
        if (state === GPIOPinState.High || state === GPIOPinState.Low) this.applyLevel(pin, state === GPIOPinState.High);
        this.onPin?.(pin.index, state, this.pioCycle);
      });
    }
  }

  applyLevel(pin, high) {
    if (pin.inputValue === high && pin.rawInputValue === high) return;
    this.lastEdge = this.cycle;
    pin.rawInputValue = high;
    // rp2040js keeps "edge" bits for a level, too: as on the chip, only a change is an edge.
    pin.setInputValue(high);
    this.quietUntil = 0;
  }

  /** The outside drives a pin from this cycle on. */
  drive(pin, high, cycle = this.cycle) {
    if (cycle < this.pioCycle) throw new Error(`cycle ${cycle} is past (${this.cycle})`);
    return this.agenda.add(cycle, () => this.applyLevel(this.rp2040.gpio[pin], high));
  }

  /** Calls at a cycle. */
  at(cycle, action) {
    return this.agenda.add(Math.max(cycle, this.pioCycle), action);
  }

  // One cycle of the PIO. PIO0 first: what PIO1 puts on a pin in this cycle is seen in the next.
  stepPio() {
    for (const [, machine] of this.active) {
      if (machine.waiting) {
        machine.checkWait();
        continue; // a wait that is over has taken this cycle
      }
      machine.updatePC = true;
      machine.executeInstruction(machine.pio.instructions[machine.pc]);
      if (machine.updatePC) machine.nextPC();
    }
    this.pioCycle++;
    for (const pio of this.rp2040.pio) pio.checkChangedPins();
  }

  // How many cycles a machine does nothing but count; it is moved on by `skip` of them when asked.
  quietFor(machine) {
    if (machine.waiting) return Infinity;
    const { instructions } = machine.pio;
    const here = instructions[machine.pc];
    if (!isJump(here)) return 0;
    if (condition(here) === JMP_X_DECREMENT && (here & 0x1f) === machine.pc) return machine.x; // a loop of one
    const level = this.rp2040.gpio[machine.jmpPin].inputValue;
    const target = (at) => {
      const opcode = instructions[at];
      const after = at === machine.wrapTop ? machine.wrapBottom : at + 1;
      if (!isJump(opcode)) return -1;
      if (condition(opcode) === JMP_X_DECREMENT) return opcode & 0x1f;
      if (condition(opcode) === JMP_PIN) return level ? opcode & 0x1f : after;
      return -1;
    };
    const second = target(machine.pc);
    if (second < 0 || target(second) !== machine.pc || second === machine.pc) return 0;
    const counts = [machine.pc, second].filter((at) => condition(instructions[at]) === JMP_X_DECREMENT).length;
    if (counts !== 1) return 0;
    return Math.max(0, 2 * (machine.x - 2));
  }

  skip(machine, cycles) {
    if (machine.waiting || cycles === 0) return;
    const { instructions } = machine.pio;
    const here = instructions[machine.pc];
    if (condition(here) === JMP_X_DECREMENT && (here & 0x1f) === machine.pc) {
      machine.x -= cycles;
      return;
    }
    // Once around for real: only the counter may have changed.
    const before = { pc: machine.pc, x: machine.x, y: machine.y, isr: machine.inputShiftReg, osr: machine.outputShiftReg };
    const turns = Math.floor(cycles / 2);
    if (turns > 0) {
      for (let i = 0; i < 2; i++) {
        machine.updatePC = true;
        machine.executeInstruction(instructions[machine.pc]);
        if (machine.updatePC) machine.nextPC();
      }
      if (
        machine.pc !== before.pc || machine.x !== before.x - 1 || machine.y !== before.y ||
        machine.inputShiftReg !== before.isr || machine.outputShiftReg !== before.osr || machine.waiting
      )
        throw new Error('a loop that was to be skipped does more than count');
      machine.x -= turns - 1;
    }
    if (cycles % 2) {
      machine.updatePC = true;
      machine.executeInstruction(instructions[machine.pc]);
      if (machine.updatePC) machine.nextPC();
    }
  }

  // Lets the PIO, and what is outside, run up to a cycle.
  settle(cycle) {
    while (this.pioCycle < cycle) {
      while (this.agenda.next <= this.pioCycle) this.agenda.take().action();
      const limit = Math.min(cycle, this.agenda.next);
      let quiet = Infinity;
      for (const [, machine] of this.active) {
        const own = this.quietFor(machine);
        if (own < quiet) quiet = own;
        if (quiet === 0) break;
      }
      const skipped = Math.min(quiet, limit - this.pioCycle);
      if (skipped >= 4 || this.active.length === 0) {
        for (const [, machine] of this.active) this.skip(machine, skipped);
        this.pioCycle += skipped;
        this.quietUntil = this.pioCycle + (quiet - skipped);
      } else {
        this.stepPio();
        // What a machine pushed is moved by the DMA in this cycle.
        const { clock } = this.rp2040;
        if (clock.nextAlarm && clock.nextAlarm.nanos <= clock.nanos) clock.tick(0);
      }
    }
  }

  // The first cycle in which the PIO does more than count.
  nextPioCycle() {
    if (this.quietUntil > this.pioCycle) return this.quietUntil;
    let quiet = Infinity;
    for (const [, machine] of this.active) {
      const own = this.quietFor(machine);
      if (own < quiet) quiet = own;
    }
    this.quietUntil = quiet < 4 ? 0 : this.pioCycle + quiet;
    return this.pioCycle + quiet;
  }

  /** Runs until a cycle, or until `until` returns true (asked after each instruction or jump in time). */
  run(cycle, until) {
    const { rp2040 } = this;
    const { core, clock } = rp2040;
    while (this.cycle < cycle) {
      if (until?.()) return true;
      while (this.agenda.next <= this.cycle) {
        this.settle(this.cycle);
        while (this.agenda.next <= this.cycle) this.agenda.take().action();
      }
      if (core.waiting && core.pendingInterrupts & core.enabledInterrupts && core.checkForInterrupts()) core.waiting = false;
      let step;
      if (core.waiting) {
        const alarm = clock.nextAlarm ? Math.ceil((clock.nextAlarm.nanos - clock.nanos) / NS_PER_TICK) : Infinity;
        let target = Math.min(this.cycle + Math.max(alarm, 0), this.agenda.next, cycle);
        if (this.active.length) {
          const pio = this.nextPioCycle();
          target = Math.min(target, Math.max(pio, this.cycle + 1));
        }
        if (target === Infinity) throw new Error('nothing will ever happen again');
        step = Math.max(1, target - this.cycle);
      } else {
        step = core.executeInstruction();
      }
      this.cycle += step;
      // A timer that goes off in this step does so at its time; what the PIO did before it has been done by then.
      if (this.agenda.next < this.cycle || (this.active.length && this.nextPioCycle() <= this.cycle)) this.settle(this.cycle);
      clock.tick(step * NS_PER_TICK);
    }
    return until?.() ?? false;
  }

  /** Seconds of the emulated clock. */
  runFor(seconds, until) {
    return this.run(this.cycle + Math.round(seconds * TICKS_PER_SECOND), until);
  }

  /** The core sleeps, and no edge is on its way through the rings. */
  get idle() {
    const { core } = this.rp2040;
    return core.waiting && !(core.pendingInterrupts & core.enabledInterrupts) && this.cycle > (this.lastEdge ?? 0) + 1_000;
  }

  /** Sets every counter forward, as if nothing had happened for so long: whole multiples of 2 us, while it is idle. */
  leap(cycles) {
    if (cycles % 250 !== 0) throw new Error('a leap is of whole microseconds, and even');
    if (!this.idle) throw new Error('a leap over something that is under way');
    this.settle(this.cycle);
    for (const [, machine] of this.active) {
      if (machine.waiting) continue;
      if (this.quietFor(machine) < 2) throw new Error('a state machine is busy');
      const here = machine.pio.instructions[machine.pc];
      if (condition(here) === JMP_X_DECREMENT && (here & 0x1f) === machine.pc) continue; // a delay under way is not shortened
      machine.x = Number(BigInt.asUintN(32, BigInt(machine.x) - BigInt(cycles) / 2n));
    }
    const { clock } = this.rp2040;
    for (let alarm = clock.nextAlarm; alarm; alarm = alarm.next) alarm.nanos += cycles * NS_PER_TICK;
    clock.nanosCounter += cycles * NS_PER_TICK;
    this.cycle += cycles;
    this.pioCycle += cycles;
    for (const entry of this.agenda.heap) entry.cycle += cycles;
    this.quietUntil = 0;
  }
}

/** A host that enumerates the device and moves the bytes of its serial line. */
export class UsbHost {
  constructor(emulator) {
    this.emulator = emulator;
    this.usb = emulator.rp2040.usbCtrl;
    this.dpram = emulator.rp2040.usbDPRAMView;
    this.toSend = []; // packets for the device
    this.reading = true; // the host asks for data
    this.packetTicks = USB_PACKET_TICKS;
    this.connected = false;
    this.configured = false;
    this.control = null;
    this.busy = new Set();
    this.onData = () => {};
    this.usb.onUSBEnabled = () => {};
    this.usb.onResetReceived = () => {};
    this.usb.DPRAMUpdated = (offset, value) => this.handedOver(offset, value);
  }

  /** The cable goes in: bus reset, then enumeration. */
  connect() {
    this.connected = true;
    this.configured = false;
    this.toggleIn = 0;
    this.toggleOut = 0;
    this.descriptors = null;
    this.busy.clear();
    this.usb.sieStatus |= 1 << 19;
    this.usb.sieStatusUpdated();
    this.emulator.at(this.emulator.cycle + TICKS_PER_SECOND / 100, () => this.enumerate());
  }

  disconnect() {
    this.connected = false;
    this.configured = false;
    this.control = null;
  }

  request(type, request, value, index, length, then) {
    const packet = Buffer.from([type, request, value & 0xff, value >> 8, index & 0xff, index >> 8, length & 0xff, length >> 8]);
    this.control = { data: [], toggle: 1, length, type, then };
    this.usb.sendSetupPacket(packet);
  }

  enumerate() {
    this.request(0x80, 6, 0x0100, 0, 64, (device) => {
      this.device = device;
      this.request(0x00, 5, 42, 0, 0, () => {
        if ((this.usb.addrEndp & 0x7f) !== 42) throw new Error('the address was not taken');
        this.request(0x80, 6, 0x0200, 0, 9, (head) => {
          this.request(0x80, 6, 0x0200, 0, head.readUInt16LE(2), (descriptors) => {
            this.descriptors = descriptors;
            this.request(0x80, 6, 0x0303, 0x0409, 255, (serial) => {
              this.serial = serial.subarray(2).toString('utf16le');
              this.request(0x00, 9, 1, 0, 0, () => {
                this.request(0x21, 0x22, 3, 0, 0, () => {
                  this.configured = true;
                  this.pump();
                });
              });
            });
          });
        });
      });
    });
  }

  bufferControl(endpoint, out) {
    return 0x80 + 8 * endpoint + (out ? 4 : 0);
  }

  bufferOffset(endpoint, out) {
    if (endpoint === 0) return 0x100;
    return this.dpram.getUint32(8 * endpoint + (out ? 4 : 0), true) & 0xffc0;
  }

  // The firmware wrote to the controller's memory; buffers that are available are used in their time.
  handedOver(offset, value) {
    if (offset < 0x80 || offset > 0xff || !this.connected) return;
    const endpoint = (offset - 0x80) >> 3;
    const out = Boolean(offset & 4);
    if (value & STALL && endpoint === 0 && this.control) {
      const { then } = this.control;
      this.control = null;
      this.onStall?.(then);
      return;
    }
    if (!(value & AVAILABLE)) return;
    if (endpoint === 0) this.emulator.at(this.emulator.cycle + 1000, () => this.controlTransaction(out));
    else this.pump();
  }

  toggled(control, expected, what) {
    if (Boolean(control & DATA1) !== Boolean(expected)) throw new Error(`${what}: wrong DATA toggle`);
  }

  finish(endpoint, out, control) {
    this.dpram.setUint32(this.bufferControl(endpoint, out), control & ~AVAILABLE & 0xffff, true);
    this.usb.indicateBufferReady(endpoint, out);
  }

  controlTransaction(out) {
    const register = this.bufferControl(0, out);
    const control = this.dpram.getUint32(register, true);
    const transfer = this.control;
    if (!(control & AVAILABLE) || !transfer || !this.connected) return;
    const bytes = Buffer.from(this.emulator.rp2040.usbDPRAM.subarray(0x100, 0x100 + (control & 0x3ff)));
    if (transfer.statusOut !== undefined && out) {
      this.toggled(control, 1, 'status out');
      this.finish(0, true, (control & ~0x3ff) | (1 << 15));
      this.done(transfer);
      return;
    }
    if (out) return; // no request here sends data
    if (transfer.type & 0x80) {
      this.toggled(control, transfer.toggle, 'control in');
      transfer.toggle ^= 1;
      transfer.data.push(bytes);
      const size = transfer.data.reduce((sum, part) => sum + part.length, 0);
      if (bytes.length < 64 || size >= transfer.length) transfer.statusOut = true;
      this.finish(0, false, control & ~(1 << 15));
    } else {
      this.toggled(control, 1, 'status in');
      this.finish(0, false, control & ~(1 << 15));
      this.emulator.at(this.emulator.cycle + 20_000, () => this.done(transfer));
    }
  }

  done(transfer) {
    if (this.control === transfer) this.control = null;
    transfer.then?.(Buffer.concat(transfer.data));
  }

  write(bytes) {
    for (let at = 0; at < bytes.length; at += 64) this.toSend.push(Buffer.from(bytes.subarray(at, at + 64)));
    this.pump();
  }

  /** A host that reads slowly, or not at all. */
  read(on) {
    this.reading = on;
    this.pump();
  }

  pump() {
    if (!this.configured) return;
    if (this.reading && this.dpram.getUint32(this.bufferControl(2, false), true) & AVAILABLE && !this.busy.has('in')) {
      this.busy.add('in');
      this.emulator.at(this.emulator.cycle + this.packetTicks, () => this.take());
    }
    if (this.toSend.length && this.dpram.getUint32(this.bufferControl(2, true), true) & AVAILABLE && !this.busy.has('out')) {
      this.busy.add('out');
      this.emulator.at(this.emulator.cycle + USB_PACKET_TICKS, () => this.give());
    }
  }

  take() {
    this.busy.delete('in');
    const control = this.dpram.getUint32(this.bufferControl(2, false), true);
    if (!this.configured || !this.reading || !(control & AVAILABLE)) return;
    this.toggled(control, this.toggleIn, 'bulk in');
    this.toggleIn ^= 1;
    const offset = this.bufferOffset(2, false);
    const bytes = Buffer.from(this.emulator.rp2040.usbDPRAM.subarray(offset, offset + (control & 0x3ff)));
    this.finish(2, false, control & ~(1 << 15));
    if (bytes.length) this.onData(bytes);
  }

  give() {
    this.busy.delete('out');
    const control = this.dpram.getUint32(this.bufferControl(2, true), true);
    if (!this.configured || !this.toSend.length || !(control & AVAILABLE)) return;
    this.toggled(control, this.toggleOut, 'bulk out');
    this.toggleOut ^= 1;
    const packet = this.toSend.shift();
    this.emulator.rp2040.usbDPRAM.set(packet, this.bufferOffset(2, true));
    this.finish(2, true, (control & ~0x3ff) | packet.length | (1 << 15));
    this.pump();
  }
}
