// One round of BullMQ: a backlog is worked off, then paced jobs are. Prints
// {"jobsPerSecond": ..., "p99": ...}. See the package comment of the program that
// calls it.
import { Queue, Worker } from "bullmq";

const [addr, name, ...numbers] = process.argv.slice(2);
const [slots, backlog, paced, pace] = numbers.map(Number);
const [host, port] = addr.split(":");
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete: { count: 1000 }, attempts: 3 } });

// work returns the worker when so many jobs are settled; closing it is not measured.
async function work(jobs, run) {
  let worker;
  await new Promise((resolve) => {
    let completed = 0;
    worker = new Worker(name, run, { connection, concurrency: slots, lockDuration: 30000 });
    worker.on("completed", () => { if (++completed === jobs) resolve(); });
  });
  return worker;
}

for (let i = 0; i < backlog; i += 500) {
  const count = Math.min(500, backlog - i);
  await queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: "noop", data: {}, opts: { jobId: `backlog-${i + n}` } })));
}
const start = performance.now();
const first = await work(backlog, async () => {});
const jobsPerSecond = backlog / ((performance.now() - start) / 1000);
await first.close(true);

const submitted = new Map();
const latencies = [];
const worked = work(paced, async (job) => { latencies.push(performance.now() - submitted.get(job.id)); });
for (let i = 0; i < paced; i++) {
  await new Promise((resolve) => setTimeout(resolve, pace));
  submitted.set(`paced-${i}`, performance.now());
  await queue.add("noop", {}, { jobId: `paced-${i}` });
}
await (await worked).close(true);
latencies.sort((a, b) => a - b);
console.log(JSON.stringify({ jobsPerSecond, p99: latencies[Math.floor(latencies.length * 0.99)] }));
await queue.close();
process.exit(0);
