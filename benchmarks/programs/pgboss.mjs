// pg-boss: batches of 100, four at a time, woken by notifications. A batch is one call of the handler.
import { PgBoss } from 'pg-boss';
import { argumentsOf, mark, serve, setting, url } from './queue.mjs';

const works = process.argv[2] === 'work';
const boss = new PgBoss({
  connectionString: url,
  max: works ? 10 : 1,
  useListenNotify: true,
  ...(works ? {} : { supervise: false, schedule: false }),
});
boss.on('error', (error) => console.error(String(error)));
await boss.start();

await serve({
  setup: () => boss.createQueue('bench', { notify: true }),
  one: (number) => boss.send('bench', argumentsOf(number)),
  many: (numbers) => boss.insert('bench', numbers.map((i) => ({ data: argumentsOf(i) }))),
  work: async () => {
    const options = {
      batchSize: Number(setting('concurrency', 100)),
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
      localConcurrency: 4,
    };
    await boss.work('bench', options, async (jobs) => {
      for (const job of jobs) mark(job.data.i);
    });
    process.on('SIGTERM', async () => {
      await boss.stop({ graceful: true, timeout: 3000 }).catch(() => {});
      process.exit(0);
    });
    await new Promise(() => {});
  },
});
await boss.stop({ graceful: false }).catch(() => {});
process.exit(0);
