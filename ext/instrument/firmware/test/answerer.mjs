// SPDX-License-Identifier: MIT
// The machine under test: answers every level of the stimulus line after a delay that a script says.
import { GPIOPinState } from 'rp2040js';

/** A small generator of numbers, the same for the same seed (mulberry32). */
export function random(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = a;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Answerer {
  /**
   * @param delayOf (index, high) => delay in ticks, or null for no answer. @param reply what it does: (emulator, pin, cycle, high)
   */
  constructor(client, delayOf, { stimulusPin = 2, answerPin = 3, level = false, reply } = {}) {
    this.emulator = client.emulator;
    this.level = level;
    this.stimuli = []; // { cycle, high, delay }
    this.emulator.drive(answerPin, level);
    this.emulator.onPin = (pin, state, cycle) => {
      if (pin !== stimulusPin || (state !== GPIOPinState.High && state !== GPIOPinState.Low)) return;
      const high = state === GPIOPinState.High;
      if (high === this.level) return;
      this.level = high;
      const delay = delayOf(this.stimuli.length, high);
      this.stimuli.push({ cycle, high, delay });
      if (delay === null) return;
      if (reply) reply(this.emulator, answerPin, cycle + delay, high);
      else this.emulator.drive(answerPin, high, cycle + delay);
    };
  }
}

/** Latencies in the order of the stimuli, as the stream of events has them; null where there was none. */
export function latenciesOf(events, isStimulus = () => true) {
  const latencies = [];
  let stimulus;
  for (const event of events) {
    if (!event.answer) {
      if (!isStimulus(event)) continue;
      stimulus = event.time;
      latencies.push(null);
    } else if (event.accepted) latencies[latencies.length - 1] = Number(event.time - stimulus);
  }
  return latencies;
}

/** Edges of a line at these distances, the first one `first` ticks from now. */
export function drivePeriodic(emulator, pin, distances, { first = 1000, level = false } = {}) {
  let cycle = emulator.cycle + first;
  let high = level;
  const cycles = [];
  let i = 0;
  // One after the other, so that a long series needs no long agenda.
  const next = () => {
    high = !high;
    emulator.applyLevel(emulator.rp2040.gpio[pin], high);
    cycles.push(cycle);
    if (i === distances.length) return;
    cycle += distances[i++];
    emulator.at(cycle, next);
  };
  emulator.at(cycle, next);
  return cycles;
}
