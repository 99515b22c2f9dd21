import { AccountConnectorsPage } from './account-connector-list.tsx';

const SourcesPage = () => <AccountConnectorsPage type="source" />;
export default SourcesPage;
