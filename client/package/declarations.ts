/** The declaration of the router of typed clients, without that of procedures which REST alone serves. */
function appRouterOf(declaration: string): string {
  const found = /export declare const appRouter: ([\s\S]*?);\n(?=\/\*\*|export )/.exec(declaration)?.[1];
  if (found === undefined) throw new Error('router.d.ts does not declare appRouter');
  return found;
}

/** What each procedure repeats and no client needs. */
const REPEATED = /^ *meta: [^\n]*\n *errorShape: \{\n[\s\S]*?\n *\};\n *\};\n/gm;

/** Declared in types.template. */
const PLAIN: Record<string, string> = {
  TRPCQueryProcedure: 'Query',
  TRPCMutationProcedure: 'Mutation',
  TRPCSubscriptionProcedure: 'Subscription',
};

/** The router as an object of plain interfaces, which needs no library. */
export function plainTypes(declaration: string): string {
  const text = appRouterOf(declaration)
    .replaceAll(REPEATED, '')
    .replaceAll(/import\("@trpc\/server"\)\.TRPCBuiltRouter<\{[^{}]*\}, /g, '')
    .replaceAll('import("@trpc/server").TRPCDecorateCreateRouterOptions<', '')
    .replaceAll(/import\("@trpc\/server"\)\.(TRPC\w+Procedure)/g, (whole, name: string) => PLAIN[name] ?? whole)
    // Of a router, what closed the two wrappers.
    .replaceAll(/\}>>(?=[;\n]|$)/g, '}');
  return refuseForeign(text);
}

/** The router as tRPC knows it, without the types of the server behind it. */
export const trpcTypes = (declaration: string): string =>
  refuseForeign(
    `declare const appRouter: ${appRouterOf(declaration)
      .replaceAll('import("./api/procedure.ts").CallContext', 'object')
      .replaceAll(
        'import("./api/endpoint-meta.ts").EndpointMeta',
        'object',
      )};\nexport type AppRouter = typeof appRouter;\n`,
    '"@trpc/server"',
  );

function refuseForeign(text: string, allowed = ''): string {
  const foreign = [...text.matchAll(/import\(([^)]*)\)/g)].find(([, from]) => from !== allowed);
  if (foreign) throw new Error(`The types of the client refer to ${foreign[1]}`);
  return text;
}
