// The Node counterpart of serving.py and marks.py: the same command line, and the same file of marks, written each 5 ms.
import fs from 'node:fs';

export const url = process.env.BENCHMARK_URL;
export const setting = (name, otherwise) => process.env[`BENCHMARK_${name.toUpperCase()}`] || otherwise;
export const argumentsOf = (number) => ({ i: number, to: `user${number}@example.com` });

const PICKED_UP = 1000;
const HEADER = 8 + 8 * PICKED_UP;
const WARM_UP = 20;
const BATCH = 1000;
const marks = Buffer.alloc(HEADER + Number(process.env.BENCHMARK_JOBS || 0));
let file = null;
let changed = false;

const now = () => Number(process.hrtime.bigint()) / 1e9; // CLOCK_MONOTONIC, as Python's time.monotonic()

function write() {
  if (changed) {
    changed = false;
    fs.writeSync(file, marks, 0, marks.length, 0);
  }
}

export function mark(number) {
  if (file === null) {
    file = fs.openSync(`${process.env.BENCHMARK_MARKS}/${process.pid}`, 'w+');
    marks.writeDoubleLE(now(), 0);
    setInterval(write, 5);
  }
  if (number < PICKED_UP) marks.writeDoubleLE(now(), 8 + 8 * number);
  marks[HEADER + number] += 1;
  changed = true;
}

const answer = (found) => console.log(JSON.stringify(found));

async function one(store, count) {
  for (let i = 0; i < WARM_UP; i++) await store(PICKED_UP + i);
  const began = now();
  for (let i = 0; i < count; i++) await store(PICKED_UP + WARM_UP + i);
  answer({ jobs: count + WARM_UP, per_second: count / (now() - began) });
}

async function many(store, count) {
  let began = now();
  let unmeasured = 0; // the first call connects
  for (let first = 0; first < count; first += BATCH) {
    await store(Array.from({ length: Math.min(BATCH, count - first) }, (_, i) => first + i));
    if (first === 0 && count > BATCH) {
      began = now();
      unmeasured = BATCH;
    }
  }
  answer({ jobs: count, per_second: (count - unmeasured) / (now() - began) });
}

async function pickup(store, count) {
  const called = [];
  const committed = [];
  const began = now();
  for (let i = 0; i < count; i++) {
    const wait = began + i * 0.05 - now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    called.push(now());
    await store(i);
    committed.push(now());
  }
  answer({ called, committed });
}

export async function serve(program) {
  const [, , command, count] = process.argv;
  if (command === 'setup') await program.setup();
  else if (command === 'work') await program.work();
  else if (command === 'one') await one(program.one, Number(count));
  else if (command === 'many') await many(program.many, Number(count));
  else if (command === 'pickup') await pickup(program.one, Number(count));
  else throw new Error(`${command}: this program cannot do that`);
}
