// Loaded first by the processes that tests start, in check: see service-bundle.ts.

const MAIN = new URL('../../server/main.ts', import.meta.url).pathname;

Bun.plugin({
  name: 'service bundle',
  setup(build) {
    build.onLoad({ filter: /\/server\/main\.ts$/ }, async ({ path }) => {
      const contents = await Bun.file(path).text();
      const bundle = process.env.SERVICE_BUNDLE;
      if (path !== MAIN || bundle === undefined) return { contents, loader: 'ts' };
      return { contents: contents.replace('./process/main.ts', bundle), loader: 'ts' };
    });
  },
});
