// Graphile Worker: at its defaults, or with the preset that its documentation gives for throughput.
import { Logger, makeWorkerUtils, run, runMigrations } from 'graphile-worker';
import { argumentsOf, mark, serve, setting, url } from './queue.mjs';

const logger = new Logger(() => () => {});
const concurrentJobs = Number(setting('concurrency', 10));
const tuned = {
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const enqueues = !['setup', 'work'].includes(process.argv[2]);
const utils = enqueues ? await makeWorkerUtils({ connectionString: url, logger, maxPoolSize: 1 }) : null;

await serve({
  setup: () => runMigrations({ connectionString: url, logger }),
  one: (number) => utils.addJob('nothing', argumentsOf(number)),
  many: (numbers) => utils.addJobs(numbers.map((i) => ({ identifier: 'nothing', payload: argumentsOf(i) }))),
  work: async () => {
    const preset = {
      worker: {
        connectionString: url,
        logger,
        concurrentJobs,
        maxPoolSize: concurrentJobs + 2,
        ...(setting('tuned') ? tuned : {}),
      },
    };
    const taskList = { nothing: async (payload) => mark(payload.i) };
    const runner = await run({ preset, noHandleSignals: true, taskList });
    process.on('SIGTERM', async () => {
      try {
        await runner.stop();
      } finally {
        process.exit(0);
      }
    });
    await runner.promise;
  },
});
if (utils) await utils.release();
