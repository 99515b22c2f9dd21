import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { addressKind, clientAddress, isMetadataName, literalAddress } from '../../server/platform/net/addresses.ts';

describe('kinds of addresses', () => {
  test.each([
    // Metadata services and link-local.
    ['169.254.169.254', 'forbidden'],
    ['169.254.0.1', 'forbidden'],
    ['169.254.170.2', 'forbidden'],
    ['100.100.100.200', 'forbidden'],
    ['168.63.129.16', 'forbidden'],
    ['192.0.0.192', 'forbidden'],
    ['fe80::1', 'forbidden'],
    ['febf:ffff::1', 'forbidden'],
    ['fe80::1%eth0', 'forbidden'],
    ['fd00:ec2::254', 'forbidden'],
    ['fd00:ec2::23', 'forbidden'],
    ['fd20:ce::254', 'forbidden'],
    // Unspecified and broadcast.
    ['0.0.0.0', 'forbidden'],
    ['0.1.2.3', 'forbidden'],
    ['::', 'forbidden'],
    ['224.0.0.1', 'forbidden'],
    ['239.255.255.250', 'forbidden'],
    ['ff02::1', 'forbidden'],
    ['255.255.255.255', 'forbidden'],
    // IPv4 within IPv6: mapped, compatible, translated, 6to4, NAT64 by both prefixes, Teredo, ISATAP.
    ['::ffff:169.254.169.254', 'forbidden'],
    ['::ffff:a9fe:a9fe', 'forbidden'],
    ['::169.254.169.254', 'forbidden'],
    ['::ffff:0:169.254.169.254', 'forbidden'],
    ['2002:a9fe:a9fe::1', 'forbidden'],
    ['64:ff9b::169.254.169.254', 'forbidden'],
    ['64:ff9b:1::169.254.169.254', 'forbidden'],
    ['64:ff9b:1:a9fe:a9:fe00::', 'forbidden'],
    ['2001:0:a9fe:a9fe::1', 'forbidden'],
    ['2001:0:808:808:0:0:5601:5601', 'forbidden'],
    ['2a00:1450::5efe:169.254.169.254', 'forbidden'],
    ['::ffff:0.0.0.0', 'forbidden'],
    // Private.
    ['127.0.0.1', 'internal'],
    ['127.255.255.254', 'internal'],
    ['::1', 'internal'],
    ['10.1.2.3', 'internal'],
    ['172.16.0.1', 'internal'],
    ['172.31.255.255', 'internal'],
    ['192.168.1.1', 'internal'],
    ['100.64.0.1', 'internal'],
    ['198.18.0.1', 'internal'],
    ['240.0.0.1', 'internal'],
    ['fc00::1', 'internal'],
    ['fd12:3456::1', 'internal'],
    ['fec0::1', 'internal'],
    ['::ffff:10.0.0.1', 'internal'],
    ['2002:7f00:1::', 'internal'],
    ['64:ff9b::10.0.0.1', 'internal'],
    ['64:ff9b::8.8.8.8', 'internal'],
    ['2a00:1450::5efe:10.0.0.1', 'internal'],
    ['2001:db8::1', 'internal'],
    // Public.
    ['8.8.8.8', 'public'],
    ['172.32.0.1', 'public'],
    ['100.63.255.255', 'public'],
    ['::ffff:8.8.8.8', 'public'],
    ['2a00:1450:4001:830::200e', 'public'],
  ] as const)('%s is %s', (address, kind) => {
    expect(addressKind(address)).toBe(kind);
  });

  /** The IPv6 forms that carry an IPv4 address. */
  const FORMS: ((bytes: number[]) => string)[] = [
    ([a, b, c, d]) => `::ffff:${a}.${b}.${c}.${d}`,
    ([a, b, c, d]) => `::ffff:0:${a}.${b}.${c}.${d}`,
    ([a, b, c, d]) => `64:ff9b::${a}.${b}.${c}.${d}`,
    ([a, b, c, d]) => `2002:${((a! << 8) | b!).toString(16)}:${((c! << 8) | d!).toString(16)}::1`,
    ([a, b, c, d]) => `2a00:1450::5efe:${a}.${b}.${c}.${d}`,
  ];
  const octet = fc.integer({ min: 0, max: 255 });

  test('an embedded address is never classified better than on its own', () => {
    const rank = { public: 0, internal: 1, forbidden: 2 };
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), fc.constantFrom(...FORMS), (bytes, form) => {
        expect(rank[addressKind(form(bytes))]).toBeGreaterThanOrEqual(rank[addressKind(bytes.join('.'))]);
      }),
      { numRuns: 3000 },
    );
  });

  test('all notations of an address are equal', () => {
    const hex = (n: number) => `0x${n.toString(16)}`;
    const octal = (n: number) => `0${n.toString(8)}`;
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), (bytes) => {
        const [a, b, c, d] = bytes;
        const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
        const plain = bytes.join('.');
        for (const written of [
          plain,
          `${plain}.`,
          String(number),
          hex(number),
          bytes.map(hex).join('.'),
          bytes.map(octal).join('.'),
          `${a}.${(b << 16) | (c << 8) | d}`,
          `${a}.${b}.${(c << 8) | d}`,
          `[::ffff:${plain}]`,
        ]) {
          expect([written, literalAddress(written)]).toEqual([written, plain]);
        }
      }),
      { numRuns: 300 },
    );
  });
});

test('names of metadata services are recognized in every notation', () => {
  for (const name of ['metadata.google.internal', 'METADATA.google.internal.', 'metadata', 'instance-data.']) {
    expect(isMetadataName(name)).toBeTrue();
  }
  for (const name of ['metadata.example.com', 'localhost', 'db']) expect(isMetadataName(name)).toBeFalse();
});

test('a name is not a literal address', () => {
  for (const name of ['localhost', 'db.example.com', '1.2.3.4.example.com', 'face.b00c', '']) {
    expect(literalAddress(name)).toBeNull();
  }
});

describe('the client behind proxies', () => {
  const proxies = ['10.0.0.0/8', '127.0.0.1', 'fd00::/8'];
  test.each([
    ['no proxy: the header of a client counts for nothing', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['one proxy', '10.1.2.3', '203.0.113.9', '203.0.113.9'],
    ['two proxies', '127.0.0.1', '203.0.113.9, 10.1.2.3', '203.0.113.9'],
    ['what the client wrote stands before its address', '10.1.2.3', '192.0.2.1, 203.0.113.9', '203.0.113.9'],
    ['an IPv4 address in IPv6', '::ffff:10.1.2.3', '203.0.113.9', '203.0.113.9'],
    ['IPv6', 'fd00::1', '2001:db8::7', '2001:db8::7'],
    ['no header', '10.1.2.3', null, '10.1.2.3'],
    ['not an address', '10.1.2.3', 'unknown, 203.0.113.9:80', '10.1.2.3'],
    ['no socket', '', '203.0.113.9', ''],
  ])('%s', (_, peer, forwarded, client) => {
    expect(clientAddress(peer, forwarded, proxies)).toBe(client);
  });
});
