// Runs named checks in order; the process ends with 1 at the first that fails.
export const [url, apiKey] = process.argv.slice(2);
export const model = 'any';

export async function run(checks) {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
    } catch (error) {
      console.error(`FAILED ${name}:`, error);
      process.exit(1);
    }
    console.log(`ok ${name}`);
  }
}
