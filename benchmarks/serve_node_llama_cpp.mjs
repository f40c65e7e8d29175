// The load of serve_clients.py on llama.cpp as node-llama-cpp brings it, for
// serve.sh:
//   node serve_node_llama_cpp.mjs MODEL THREADS PROMPT GENERATE TEMPERATURE
//                                 REQUESTS CLIENTS...
// It has no server, so this is in process, without HTTP: one context with as many
// sequences as there are clients, which batches them. The same line for each number
// of clients, after one round that does not count.
import {createRequire} from "node:module";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [model, ...numbers] = process.argv.slice(2);
const [threads, prompt, generate, temperature, requests, ...clients] = numbers.map(Number);
const {version} = createRequire(import.meta.url)("./node_modules/node-llama-cpp/package.json");

const llama = await getLlama({
  gpu: false, build: "never", maxThreads: threads, logLevel: LlamaLogLevel.error,
});
const loaded = await llama.loadModel({modelPath: model});

const randomIds = () =>
  Array.from({length: prompt}, () => 5 + Math.floor(Math.random() * 200));

// Arrivals of the tokens of one request, milliseconds after its start.
async function request(sequence, count) {
  await sequence.clearHistory();
  const arrivals = [];
  const start = performance.now();
  const tokens = sequence.evaluate(randomIds(), {
    temperature, topK: 0, topP: 1, minP: 0, yieldEogToken: true,
  });
  for await (const _ of tokens) {
    arrivals.push(performance.now() - start);
    if (arrivals.length === count) break;
  }
  return arrivals;
}

function percentile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted.length ? sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] : 0;
}

for (const number of clients) {
  const context = await loaded.createContext({
    sequences: number, contextSize: prompt + generate + 8, threads,
  });
  const sequences = Array.from({length: number}, () => context.getSequence());
  await Promise.all(sequences.map((sequence) => request(sequence, 2)));
  const answers = [];
  let failed = 0;
  const start = performance.now();
  await Promise.all(sequences.map(async (sequence) => {
    for (let i = 0; i < requests; ++i) {
      const arrivals = await request(sequence, generate).catch(() => []);
      if (arrivals.length === generate) answers.push(arrivals);
      else ++failed;
    }
  }));
  const seconds = (performance.now() - start) / 1000;
  const first = answers.map((arrivals) => arrivals[0]);
  const gaps = answers.flatMap((arrivals) =>
    arrivals.slice(1).map((arrival, i) => arrival - arrivals[i]));
  console.log([
    `node-llama-cpp@${version}`, number,
    (answers.length / seconds).toFixed(3),
    (answers.length * generate / seconds).toFixed(1),
    ...[first, gaps].flatMap((values) =>
      [0.5, 0.99].map((share) => percentile(values, share).toFixed(1))),
    failed, "-",
  ].join("\t"));
  await context.dispose();
}
process.exit(0);
