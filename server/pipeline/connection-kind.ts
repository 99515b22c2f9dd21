import type { ConnectorDescription } from '../connectors/contract/connector.ts';

type Category = ConnectorDescription['category'];
const APPLICATIONS: Category[] = ['saas', 'ads', 'crm', 'chat', 'http'];
const SQL: Category[] = ['database', 'warehouse'];

/** Whether connections from a database to such a destination are reverse ETL. */
export const isApplication = (connector: { category: Category }): boolean => APPLICATIONS.includes(connector.category);

/** From a database to a business application is reverse ETL; every other pair is ETL. */
export const kindOf = (pair: {
  source_connector: { category: Category };
  destination_connector: { category: Category };
}): 'elt' | 'reverse_etl' =>
  SQL.includes(pair.source_connector.category) && isApplication(pair.destination_connector) ? 'reverse_etl' : 'elt';
