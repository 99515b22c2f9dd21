import { AccountConnectorsPage } from './list.tsx';

const DestinationsPage = () => <AccountConnectorsPage type="destination" />;
export default DestinationsPage;
