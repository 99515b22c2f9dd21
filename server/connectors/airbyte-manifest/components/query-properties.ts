import { isObject, type Json, type JsonObject } from './references.ts';

const isQuery = (value: Json | undefined) => isObject(value) && value.type === 'QueryProperties';

/**
 * Moves the properties that a requester asks for to its retriever, which sends one request for each chunk of them. They
 * are a field of the requester, or stand in place of one of its parameters.
 */
export function withQuery(retriever: JsonObject): JsonObject {
  const { requester } = retriever;
  if (retriever.type !== 'SimpleRetriever' || !isObject(requester)) return retriever;
  const { query_properties, fetch_properties_from_endpoint: endpoint, ...rest } = requester;
  if (query_properties !== undefined)
    return { ...retriever, requester: rest, query: { ...asObject(query_properties) } };
  if (endpoint !== undefined) return { ...retriever, requester: rest, query: { property_list: endpoint } };
  const parameters = rest.request_parameters;
  if (!isObject(parameters)) return retriever;
  const [parameter] = Object.keys(parameters).filter((name) => isQuery(parameters[name]));
  if (parameter === undefined) return retriever;
  const { [parameter]: query, ...others } = parameters;
  return { ...retriever, requester: { ...rest, request_parameters: others }, query: { ...asObject(query), parameter } };
}

const asObject = (value: Json | undefined): JsonObject => (isObject(value) ? value : { property_list: value ?? null });
