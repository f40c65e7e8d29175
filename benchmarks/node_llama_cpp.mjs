// Rates of llama.cpp as node-llama-cpp brings it, for peers.sh:
//   node node_llama_cpp.mjs MODEL PROMPT GENERATE THREADS REPEAT
// Prints "node-llama-cpp@VERSION PREFILL DECODE", medians of REPEAT runs after
// one that does not count. As `weft bench`: a prompt of fixed tokens in one
// batch; then, from an empty context and one token, the most likely ones.
import {createRequire} from "node:module";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [model, ...numbers] = process.argv.slice(2);
const [prompt, generate, threads, repeat] = numbers.map(Number);
const {version} = createRequire(import.meta.url)("./node_modules/node-llama-cpp/package.json");

const llama = await getLlama({
  gpu: false, build: "never", maxThreads: threads, logLevel: LlamaLogLevel.error,
});
const loaded = await llama.loadModel({modelPath: model});
const context = await loaded.createContext({
  contextSize: prompt + generate + 8, batchSize: prompt, threads,
});
const sequence = context.getSequence();
const tokens = Array.from({length: prompt}, (_, i) => 5 + (i * 37) % 200);

async function seconds(work) {
  await sequence.clearHistory();
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

const median = (rates) => rates.sort((a, b) => a - b)[Math.floor(rates.length / 2)];
const prefill = [], decode = [];
for (let run = 0; run <= repeat; ++run) {
  const p = prompt / await seconds(() => sequence.evaluateWithoutGeneratingNewTokens(tokens));
  let count = 0;
  const d = await seconds(async () => {
    for await (const _ of sequence.evaluate([1], {temperature: 0, yieldEogToken: true})) {
      if (++count === generate) break;
    }
  });
  if (run === 0) continue;
  prefill.push(p);
  decode.push(count / d);
}
console.log(`node-llama-cpp@${version}`, median(prefill), median(decode));
process.exit(0);
