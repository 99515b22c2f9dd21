import { AccountConnectorsPage } from './list.tsx';

const SourcesPage = () => <AccountConnectorsPage type="source" />;
export default SourcesPage;
