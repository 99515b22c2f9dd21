import { describe, expect, test } from 'bun:test';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import packageFile from '../../package.json' with { type: 'json' };
import { billOfMaterials, notices, thirdParties } from '../../server/deploy/third-party.ts';
import { readConfig } from '../../server/platform/config.ts';
import { temporaryFolder } from '../support/postgres.ts';
import { isThorough } from '../support/thorough.ts';

const DEPLOY = join(import.meta.dir, '../../server/deploy');
const read = (path: string) => readFileSync(join(DEPLOY, path), 'utf8');
const settings = Object.keys(
  readConfig({ SECRET_KEY: 'given, so that no key file is created', DATA_DIR: temporaryFolder() }),
);

const missingProgram = (name: string, debian: string): boolean => {
  if (Bun.which(name) !== null) return false;
  const reason = `the Debian package ${debian} is not installed`;
  if (process.env.CI === 'true') throw new Error(`Tests need ${name}, but ${reason}`);
  console.warn(`Tests with ${name} are SKIPPED: ${reason}`);
  return true;
};

async function output(...command: string[]): Promise<{ code: number; text: string }> {
  const child = Bun.spawn(command, { cwd: DEPLOY, stdout: 'pipe', stderr: 'pipe' });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, text: out + err };
}

describe('packages of others', () => {
  const parties = thirdParties();

  test('are listed with what they need, each with a license', () => {
    const names = parties.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(Object.keys(packageFile.dependencies)));
    expect(names).toContain('eventsource-parser');
    expect(names).not.toContain('oxlint');
    // Installed for the types of tRPC, and left out of the image.
    expect(names).not.toContain('typescript');
    expect(parties.filter(({ license }) => license === 'NOASSERTION')).toEqual([]);
  });

  test('may be distributed: none has terms that reach this program', () => {
    // Of sharp: a library that is linked dynamically and may be replaced.
    const copyleft = parties.filter(({ license }) => /GPL|SSPL|BUSL|Elastic/.test(license)).map(({ name }) => name);
    expect(copyleft.filter((name) => !name.startsWith('@img/sharp-libvips-'))).toEqual([]);
    expect(notices(parties)).toContain('Permission is hereby granted');
  });

  test('are a CycloneDX document', () => {
    const { bomFormat, specVersion, components } = billOfMaterials(parties);
    expect({ bomFormat, specVersion }).toEqual({ bomFormat: 'CycloneDX', specVersion: '1.6' });
    expect(components).toHaveLength(parties.length);
    expect(new Set(components.map((one) => one['bom-ref'])).size).toBe(components.length);
    expect(components.find(({ name }) => name === '@trpc/client')?.purl).toMatch(/^pkg:npm\/%40trpc\/client@\d/);
  });

  test('are written whole, or not at all on a full disk', async () => {
    const folder = temporaryFolder();
    const files = ['sbom.json', 'licenses.txt'].map((name) => join(folder, name));
    for (const file of files) writeFileSync(file, 'of before');
    const command = [process.execPath, join(DEPLOY, 'third-party.ts'), ...files];
    const full = await output('sh', '-c', 'trap "" XFSZ; ulimit -f 8; exec "$@"', 'sh', ...command);
    expect(full).toEqual({ code: 1, text: expect.stringMatching(/^Nothing was written: .*\n$/) });
    expect(files.map((file) => readFileSync(file, 'utf8'))).toEqual(['of before', 'of before']);
    expect(readdirSync(folder)).toHaveLength(2);
    expect((await output(...command)).code).toBe(0);
    expect(JSON.parse(readFileSync(files[0]!, 'utf8'))).toMatchObject({ bomFormat: 'CycloneDX' });
    expect(readdirSync(folder)).toHaveLength(2);
  });
});

describe('systemd units', () => {
  const units = globSync('systemd/*.service', { cwd: DEPLOY }).toSorted();

  test('exist for each mode', () => {
    expect(units).toHaveLength(3);
  });

  const skip = missingProgram('systemd-analyze', 'systemd');
  test.skipIf(skip)('have an exposure below 2 and nothing that systemd does not know', async () => {
    const { text } = await output('systemd-analyze', 'verify', ...units.map((unit) => join(DEPLOY, unit)));
    expect(text.split('\n').filter((line) => line !== '' && !line.includes('is not executable'))).toEqual([]);
    for (const unit of units) {
      const { code } = await output(
        'systemd-analyze',
        'security',
        '--offline=yes',
        '--threshold=20',
        join(DEPLOY, unit),
      );
      expect({ unit, code }).toEqual({ unit, code: 0 });
    }
  });

  test('give settings that exist', () => {
    const given = [...read('systemd/environment.example').matchAll(/^(?:# )?([A-Z_]+)=/gm)].map(([, name]) => name!);
    expect(given.length).toBeGreaterThan(5);
    expect(given.filter((name) => !settings.includes(name))).toEqual([]);
  });
});

interface Container {
  args: string[];
  env?: { name: string }[];
  envFrom?: Record<string, { name: string }>[];
  ports?: { name: string }[];
  volumeMounts: { name: string }[];
}

describe('Kubernetes manifests', () => {
  const kustomization = parse(read('kubernetes/kustomization.yaml')) as { resources: string[] };
  const objects = kustomization.resources.flatMap((path) =>
    parseAllDocuments(read(`kubernetes/${path}`), { uniqueKeys: true }).map((one) => {
      expect({ path, errors: one.errors }).toEqual({ path, errors: [] });
      return one.toJS();
    }),
  );
  const ofKind = (kind: string) => objects.filter((one) => one.kind === kind);
  const labelsOf = (deployment: { spec: { template: { metadata: { labels: Record<string, unknown> } } } }) =>
    deployment.spec.template.metadata.labels;

  test('are all part of the kustomization', () => {
    const files = globSync('kubernetes/*.yaml', { cwd: DEPLOY }).map((path) => path.split('/')[1]!);
    expect(files.toSorted()).toEqual(['kustomization.yaml', ...kustomization.resources].toSorted());
  });

  test('select the pods of one deployment each', () => {
    const deployments = ofKind('Deployment');
    expect(deployments).toHaveLength(2);
    for (const one of deployments) expect(labelsOf(one)).toEqual(one.spec.selector.matchLabels);
    const selectors = [
      ...ofKind('PodDisruptionBudget').map(({ spec }) => spec.selector.matchLabels),
      ...ofKind('Service').map(({ spec }) => spec.selector),
    ];
    expect(selectors).toHaveLength(3);
    for (const selector of selectors) {
      const matching = deployments.filter((one) => matches(labelsOf(one), selector));
      expect({ selector, matching: matching.length }).toEqual({ selector, matching: 1 });
    }
    const [scaler] = ofKind('HorizontalPodAutoscaler');
    expect(deployments.map(({ metadata }) => metadata.name)).toContain(scaler.spec.scaleTargetRef.name);
  });

  test('refer to what exists, and give settings that exist', () => {
    const names = (kind: string) => ofKind(kind).map(({ metadata }) => metadata.name);
    for (const { spec } of ofKind('Deployment')) {
      const pod = spec.template.spec;
      const [container] = pod.containers as [Container];
      expect(['api', 'worker']).toContain(container.args[0]!);
      expect(container.volumeMounts.map(({ name }) => name)).toEqual(
        pod.volumes.map(({ name }: { name: string }) => name),
      );
      for (const from of container.envFrom ?? []) {
        if (from.configMapRef) expect(names('ConfigMap')).toContain(from.configMapRef.name);
        if (from.secretRef) expect(names('Secret')).toContain(from.secretRef.name);
      }
      for (const [key, value] of Object.entries(container)) {
        if (!key.endsWith('Probe')) continue;
        const { path, port } = (value as unknown as { httpGet: { path: string; port: string } }).httpGet;
        expect(['/readyz', '/healthz']).toContain(path);
        expect(container.ports!.map(({ name }) => name)).toContain(port);
      }
      // Streams are released within the time that a worker gets.
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(45);
    }
    const given = [
      ...ofKind('ConfigMap').flatMap(({ data }) => Object.keys(data)),
      ...ofKind('Secret').flatMap(({ stringData }) => Object.keys(stringData)),
      ...ofKind('Deployment').flatMap(({ spec }) =>
        spec.template.spec.containers[0].env.map((one: { name: string }) => one.name),
      ),
    ];
    expect(given.filter((name) => !settings.includes(name))).toEqual([]);
  });
});

const noKubectl = missingProgram('kubectl', 'kubernetes-client');
test.skipIf(noKubectl)('the overlay for the age of the queue replaces the scaler of workers', async () => {
  const { code, text } = await output('kubectl', 'kustomize', 'kubernetes-queue');
  expect({ code, text: code === 0 ? '' : text }).toEqual({ code: 0, text: '' });
  const objects = parseAllDocuments(text).map((one) => one.toJS());
  const named = (kind: string) => objects.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name);
  expect(named('HorizontalPodAutoscaler')).toEqual([]);
  const [scaled] = objects.filter(({ kind }) => kind === 'ScaledObject');
  expect(named('Deployment')).toContain(scaled.spec.scaleTargetRef.name);
  const [authentication] = objects.filter(({ kind }) => kind === 'TriggerAuthentication');
  expect(scaled.spec.triggers[0].authenticationRef.name).toBe(authentication.metadata.name);
  const [from] = authentication.spec.secretTargetRef;
  const secret = objects.find((one) => one.kind === 'Secret' && one.metadata.name === from.name);
  expect(Object.keys(secret.stringData)).toContain(from.key);
});

test('the GitHub Action hands its inputs to the script', () => {
  const { inputs, runs } = parse(read('github-action/action.yml'));
  const { env, run } = runs.steps.at(-1);
  const used = Object.values(env as Record<string, string>).map((value) => /inputs\.(\w+)/.exec(value)?.[1]);
  expect(used.toSorted()).toEqual(Object.keys(inputs).toSorted());
  // An input within a command would be executed.
  expect(run).not.toContain('inputs.');
  for (const name of Object.keys(env).filter((one) => one.startsWith('APPLY_')))
    expect(read('github-action/apply.sh')).toContain(`$${name}`);
});

describe('the Helm chart', () => {
  const chart = globSync('helm/data-pipelines/**/*', { cwd: DEPLOY }).filter((path) => /\.\w+$/.test(path));
  // In the order of render.sh: those of the top folder first.
  const depth = (path: string) => path.split('/').length;
  const sources = chart.toSorted((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1)).map(read);

  test.each(globSync('helm/values/*.yaml', { cwd: DEPLOY }))('was rendered with %s after its last change', (values) => {
    const sum = new Bun.CryptoHasher('sha256').update([...sources, read(values)].join('')).digest('hex');
    // Else run server/deploy/helm/render.sh.
    expect(read(values.replace('/values/', '/rendered/'))).toStartWith(
      `# By render.sh, from chart and values with the SHA-256 ${sum}\n`,
    );
  });

  const rendered = globSync('helm/rendered/*.yaml', { cwd: DEPLOY });
  const objectsIn = (path: string) => parseAllDocuments(read(path), { uniqueKeys: true }).map((one) => one.toJS());

  test.each(rendered)('has pods without rights, with probes, and settings that exist (%s)', (path) => {
    const objects = objectsIn(path);
    const ofKind = (kind: string) => objects.filter((one) => one.kind === kind);
    const secrets = [...ofKind('Secret').map(({ metadata }) => metadata.name), 'pipelines-credentials'];
    const deployments = ofKind('Deployment');
    expect(deployments.map(({ spec }) => spec.template.spec.containers[0].args)).toEqual([['api'], ['worker']]);
    for (const { spec } of deployments) {
      const pod = spec.template.spec;
      const [container] = pod.containers;
      expect(pod).toMatchObject({ automountServiceAccountToken: false, terminationGracePeriodSeconds: 60 });
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(matches(spec.template.metadata.labels, spec.selector.matchLabels)).toBeTrue();
      expect(container.volumeMounts.map((one: Named) => one.name)).toEqual(pod.volumes.map((one: Named) => one.name));
      const probes = Object.entries<any>(container).filter(([key]) => key.endsWith('Probe'));
      expect(probes.length).toBeGreaterThanOrEqual(2);
      const ports = container.ports.map((one: Named) => one.name);
      for (const [, { httpGet }] of probes) expect(ports).toContain(httpGet.port);
      // The port of the probes is the one on which the service listens, on all addresses.
      const env = Object.fromEntries(container.env.map((one: Named & { value: string }) => [one.name, one.value]));
      const { HOST, PORT, METRICS_PORT } = env;
      expect([HOST, PORT ?? METRICS_PORT]).toEqual(['0.0.0.0', String(container.ports[0].containerPort)]);
      const [settingsFrom, secretFrom] = container.envFrom;
      const [map] = ofKind('ConfigMap');
      expect(settingsFrom.configMapRef.name).toBe(map.metadata.name);
      expect(secrets).toContain(secretFrom.secretRef.name);
      const given = [...Object.keys(env), ...Object.keys(map.data)];
      const secret = ofKind('Secret').flatMap(({ stringData }) => Object.keys(stringData));
      expect([...given, ...secret].filter((name) => !settings.includes(name))).toEqual([]);
      // A setting that another process needs as well must not hide behind that of this one.
      expect(Object.values<unknown>(map.data).every((value) => typeof value === 'string')).toBeTrue();
    }
    const labels = deployments.map(({ spec }) => spec.template.metadata.labels);
    const selectors = [
      ...ofKind('Service').map(({ spec }) => spec.selector),
      ...[...ofKind('PodDisruptionBudget'), ...ofKind('PodMonitor')].map(({ spec }) => spec.selector.matchLabels),
    ];
    expect(selectors.length).toBeGreaterThanOrEqual(3);
    for (const selector of selectors) expect(labels.filter((one) => matches(one, selector))).toHaveLength(1);
    for (const one of [...ofKind('HorizontalPodAutoscaler'), ...ofKind('ScaledObject')])
      expect(one.spec.scaleTargetRef.name).toBe(deployments[1].metadata.name);
    // The replicas of a scaled deployment belong to its scaler.
    expect(deployments.map(({ spec }) => spec.replicas)).toEqual([2, undefined]);
  });

  test('scales workers by what they use, and by the age of the queue with an adapter or KEDA', () => {
    const scalers = Object.fromEntries(
      rendered.map((path) => {
        const found = objectsIn(path).find(({ kind }) => ['HorizontalPodAutoscaler', 'ScaledObject'].includes(kind));
        return [path.split('/').at(-1), found.spec.metrics?.[0] ?? found.spec.triggers[0]];
      }),
    );
    expect(scalers['existing-secret.yaml']).toMatchObject({ type: 'Resource', resource: { name: 'cpu' } });
    expect(scalers['queue-age.yaml'].external.metric).toEqual({
      name: 'datapipelines_queue_oldest_age_seconds',
      selector: { matchLabels: { queue: 'execute_stream' } },
    });
    const [sameQuery] = parseAllDocuments(read('kubernetes-queue/queue-age.yaml')).map((one) => one.toJS());
    expect(scalers['keda.yaml'].metadata.query).toBe(sameQuery.spec.triggers[0].metadata.query);
  });
});

interface Named {
  name: string;
}

const matches = (labels: Record<string, unknown>, selector: object) =>
  Object.entries(selector).every(([key, value]) => labels[key] === value);

test('the compose file gives settings that exist to services that exist', () => {
  const { services, volumes } = parse(read('compose.yaml'), { merge: true });
  expect(Object.keys(services)).toEqual(['database', 'api', 'worker']);
  for (const name of ['api', 'worker']) {
    const { environment, depends_on, command, read_only, volumes: mounted } = services[name];
    expect(command).toEqual([name]);
    expect(read_only).toBeTrue();
    expect(Object.keys(environment).filter((one) => !settings.includes(one))).toEqual([]);
    expect(Object.keys(depends_on).every((one) => one in services)).toBeTrue();
    expect(mounted.every((one: string) => Object.keys(volumes).includes(one.split(':')[0]!))).toBeTrue();
  }
});

test.each([
  ['on a full disk', 'cache', 'tar'],
  ['without a folder', 'occupied', 'ENOTDIR: '],
])('a single file that cannot unpack itself %s names the reason, and leaves nothing', async (_, place, reason) => {
  const folder = temporaryFolder();
  const [content, archive, cache] = ['content', 'app.tar.zst', place].map((name) => join(folder, name)) as Paths;
  mkdirSync(content);
  writeFileSync(join(content, 'large'), new Uint8Array(4_000_000));
  writeFileSync(join(folder, 'occupied'), '');
  const packed = Bun.spawnSync(['tar', '-C', content, '-cf', '-', '.']).stdout;
  writeFileSync(archive, Bun.zstdCompressSync(packed));
  const launcher = JSON.stringify(join(DEPLOY, 'launcher.ts'));
  const program = `const { launch } = await import(${launcher}); await launch(${JSON.stringify(archive)}, 'version');`;
  // The kernel ends writes, as it does on a full disk.
  const limited = ['sh', '-c', 'trap "" XFSZ; ulimit -f 2000; exec "$@"', 'sh'];
  const child = Bun.spawn([...limited, process.execPath, '-e', program], {
    env: { PATH: process.env.PATH, HOME: folder, XDG_CACHE_HOME: cache },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [err, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  expect(err).toStartWith(`The service could not be unpacked into ${join(cache, 'data-pipelines')}: ${reason}`);
  expect(err.trim().split('\n')).toHaveLength(1);
  expect(code).toBe(1);
  const left = join(cache, 'data-pipelines');
  expect(existsSync(left) ? readdirSync(left) : []).toEqual([]);
});

type Paths = [content: string, archive: string, cache: string];

// It builds for a minute.
if (isThorough) {
  test('the single file unpacks itself, starts the service and is the command line', async () => {
    const folder = temporaryFolder();
    const file = join(folder, 'data-pipelines');
    expect(await output('./single-file.sh', file)).toMatchObject({ code: 0 });
    const env = { PATH: process.env.PATH, HOME: folder, DATA_DIR: join(folder, 'data'), PORT: '0', DEMO: '0' };
    const child = Bun.spawn([file, 'all'], { cwd: folder, env, stdout: 'pipe', stderr: 'ignore' });
    let text = '';
    for await (const part of child.stdout) {
      text += new TextDecoder().decode(part);
      if (text.includes('API key')) break;
    }
    const [url, key] = [/http:\S+/.exec(text)?.[0], /dpm_\S+/.exec(text)?.[0]];
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    const client = Bun.spawn([file, 'cli', 'sources', 'create', 'demo', '--name', 'Shop', '-o', 'name'], {
      env: { ...env, DATA_PIPELINES_URL: url, DATA_PIPELINES_KEY: key },
      stdout: 'pipe',
    });
    expect(await new Response(client.stdout).text()).toBe('Shop\n');
    child.kill('SIGTERM');
    expect(await child.exited).toBe(0);
  }, 300_000);
}
