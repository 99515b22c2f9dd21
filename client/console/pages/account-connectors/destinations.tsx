import { AccountConnectorsPage } from './account-connector-list.tsx';

const DestinationsPage = () => <AccountConnectorsPage type="destination" />;
export default DestinationsPage;
