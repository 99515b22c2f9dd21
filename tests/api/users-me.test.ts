import { describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import sharp from 'sharp';
import { users } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { testDeps } from '../support/database.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- tests read responses of any shape
type Json = any;

const t = await testDeps();
const api = testApi(t);
const app = createApp(t.deps);
const { db, objects } = t.deps;

const STEPS = [
  'profile',
  'add_source',
  'add_destination',
  'create_connection',
  'first_run',
  'invite_user',
  'create_trigger',
];

describe('PUT /users/me/onboarding-state', () => {
  const put = (body: unknown) => api.call('PUT', '/users/me/onboarding-state', body);

  test('200: replaces the whole state, which GET /users/me shows', async () => {
    const full = {
      completed_steps: ['add_source', 'profile', 'profile'],
      current_step: 'first_run',
      dismissed: true,
      data: { a: [1] },
    };
    const { status, body } = await put(full);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      completed_steps: ['profile', 'add_source'],
      current_step: 'first_run',
      dismissed: true,
      data: { a: [1] },
      is_complete: false,
      completed_at: null,
      progress_percent: 29,
    });
    expect((await api.call('GET', '/users/me')).body.onboarding_state).toEqual(body);
    expect((await put({ completed_steps: [] })).body).toMatchObject({
      current_step: null,
      dismissed: false,
      data: {},
      progress_percent: 0,
    });
  });
  test('200: completion keeps its time until a step is undone', async () => {
    const first = (await put({ completed_steps: STEPS })).body;
    expect(first).toMatchObject({ is_complete: true, progress_percent: 100 });
    expect(first.completed_at).toBe(first.updated_at);
    expect((await put({ completed_steps: STEPS, dismissed: true })).body.completed_at).toBe(first.completed_at);
    expect((await put({ completed_steps: STEPS.slice(1) })).body.completed_at).toBeNull();
  });
  test.each([
    [undefined, ['body'], 'missing'],
    [{}, ['body', 'completed_steps'], 'missing'],
    [{ completed_steps: ['fly'] }, ['body', 'completed_steps', 0], 'enum'],
    [{ completed_steps: [], data: { a: 'ä'.repeat(4100) } }, ['body', 'data'], 'value_error'],
    [{ completed_steps: [], x: 1 }, ['body', 'x'], 'extra_forbidden'],
  ])('422: %j', async (body, loc, type) => {
    const answer = await put(body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail[0]).toMatchObject({ loc, type });
  });
  test('401', async () => {
    expect((await api.anonymous('PUT', '/users/me/onboarding-state', { completed_steps: [] })).status).toBe(401);
  });
});

describe('POST /users/me/avatar', () => {
  const upload = async (form: FormData | string | null, headers: Record<string, string> = {}) => {
    const authorization = `Bearer ${t.api_key}`;
    const request = { method: 'POST', headers: { authorization, ...headers }, body: form };
    const answer = await app.handle(new Request('http://localhost/users/me/avatar', request));
    return { status: answer.status, body: (await answer.json()) as Json };
  };
  const formWith = (bytes: Uint8Array<ArrayBuffer>, name = 'file') => {
    const form = new FormData();
    form.set(name, new File([bytes], 'me.txt', { type: 'text/plain' }));
    return form;
  };
  const bytesOf = (buffer: Buffer) => new Uint8Array(buffer);
  const picture = (width = 600, height = 300) =>
    sharp({ create: { width, height, channels: 3, background: { r: 200, g: 30, b: 30 } } });
  const get = (path: string) => app.handle(new Request(`http://localhost${path}`));

  test.each(['png', 'jpeg', 'webp'] as const)(
    '200: detects %s by its content, resizes to 256 × 256 and strips metadata',
    async (format) => {
      const exif = { IFD0: { Copyright: 'a secret place', Artist: 'somebody' } };
      const created = await picture().withExif(exif)[format]().toBuffer();
      expect((await sharp(created).metadata()).exif).toBeDefined();
      const { status, body } = await upload(formWith(bytesOf(created)));
      expect(status).toBe(200);
      expect(body).toMatchObject({ width: 256, height: 256, content_type: 'image/webp' });
      const answer = await get(body.avatar_url);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toBe('image/webp');
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
      const stored = Buffer.from(await answer.arrayBuffer());
      expect(stored.byteLength).toBe(body.size_bytes);
      const metadata = await sharp(stored).metadata();
      expect(metadata).toMatchObject({ format: 'webp', width: 256, height: 256 });
      expect([metadata.exif, metadata.xmp, metadata.icc, metadata.iptc]).toEqual([
        undefined,
        undefined,
        undefined,
        undefined,
      ]);
      expect((await api.call('GET', '/users/me')).body.avatar_url).toBe(body.avatar_url);
    },
  );
  test('200: rotates the picture as its EXIF orientation says', async () => {
    const half = await sharp({ create: { width: 100, height: 200, channels: 3, background: 'white' } })
      .png()
      .toBuffer();
    const turned = await picture(200, 200)
      .composite([{ input: half, left: 0, top: 0 }])
      .withMetadata({ orientation: 3 })
      .jpeg()
      .toBuffer();
    const { body } = await upload(formWith(bytesOf(turned)));
    const { data, info } = await sharp(await (await get(body.avatar_url)).arrayBuffer())
      .raw()
      .toBuffer({ resolveWithObject: true });
    const green = (x: number) => data[(128 * info.width + x) * info.channels + 1]!;
    expect(green(20)).toBeLessThan(100);
    expect(green(235)).toBeGreaterThan(200);
  });
  test('200: deletes the previous picture', async () => {
    const png = bytesOf(await picture().png().toBuffer());
    const first = (await upload(formWith(png))).body.avatar_url;
    const [before] = await db.select().from(users).where(eq(users.id, t.user_id));
    const second = (await upload(formWith(png))).body.avatar_url;
    expect(second).not.toBe(first);
    expect((await get(first)).status).toBe(404);
    expect(await objects.get(before!.avatar_key!)).toBeNull();
  });
  test.each<[string, () => Promise<Buffer>]>([
    ['a GIF', () => picture().gif().toBuffer()],
    ['an SVG', async () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')],
    ['nothing', async () => Buffer.alloc(0)],
    ['a PNG cut short', async () => (await picture().png().toBuffer()).subarray(0, 200)],
    ['a JPEG cut short', async () => (await picture().jpeg().toBuffer()).subarray(0, 900)],
    [
      'the first bytes of a WebP and noise',
      async () => Buffer.concat([Buffer.from('RIFF\x10\0\0\0WEBP'), Buffer.alloc(64, 7)]),
    ],
  ])('400 unsupported_image: %s', async (_, make) => {
    expect(await upload(formWith(bytesOf(await make())))).toMatchObject({
      status: 400,
      body: { code: 'unsupported_image' },
    });
  });
  test('400 image_too_large: by its pixels, before they are decoded', async () => {
    const bomb = bytesOf(await picture(4097, 4096).png().toBuffer());
    expect(bomb.byteLength).toBeLessThan(2 * 1024 * 1024);
    const answer = await upload(formWith(bomb));
    expect(answer).toMatchObject({ status: 400, body: { code: 'image_too_large', limit_pixels: 4096 * 4096 } });
  });
  test('400 image_too_large: by its bytes, slightly and far over the limit', async () => {
    const limit = 2 * 1024 * 1024;
    const png = await picture().png().toBuffer();
    const padded = (size: number) => bytesOf(Buffer.concat([png, Buffer.alloc(size - png.byteLength)]));
    expect((await upload(formWith(padded(limit)))).status).toBe(200);
    for (const size of [limit + 1, limit * 3]) {
      const answer = await upload(formWith(padded(size)));
      expect(answer).toMatchObject({ status: 400, body: { code: 'image_too_large', limit_bytes: limit } });
    }
  });
  test('422 without the part', async () => {
    const other = formWith(bytesOf(await picture().png().toBuffer()), 'picture');
    const text = new FormData();
    text.set('file', 'no file');
    const twice = formWith(new Uint8Array([1]));
    twice.append('file', new File(['2'], 'b.png'));
    const answers = await Promise.all([
      upload(null),
      upload('{}', { 'content-type': 'application/json' }),
      upload(new FormData()),
    ]);
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'file'], type: 'missing' }] } });
    }
    expect((await upload(other)).body.detail).toMatchObject([
      { loc: ['body', 'file'] },
      { loc: ['body', 'picture'], type: 'extra_forbidden' },
    ]);
    for (const form of [text, twice])
      expect(await upload(form)).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'file'] }] } });
    expect((await upload('broken', { 'content-type': 'multipart/form-data; boundary=x' })).status).toBe(422);
  });
  test('401, before the body is parsed', async () => {
    const answer = await app.handle(new Request('http://localhost/users/me/avatar', { method: 'POST', body: 'x' }));
    expect(answer.status).toBe(401);
  });
  test('deleting a user deletes the picture', async () => {
    const key = await api.keyWith([]);
    const { body: me } = await api.as(key)('GET', '/users/me');
    const form = formWith(bytesOf(await picture().png().toBuffer()));
    const { body } = await upload(form, { authorization: `Bearer ${key}` });
    await api.call('DELETE', `/users/${me.id}`);
    expect((await get(body.avatar_url)).status).toBe(404);
  });
});

describe('GET /avatars/{id}', () => {
  test('404 for a URL that no upload created', async () => {
    for (const id of ['x', '0'.repeat(32), '..%2F..%2Fsecret.key', '..%2f', '']) {
      expect((await app.handle(new Request(`http://localhost/avatars/${id}`))).status).toBe(404);
    }
  });
});
