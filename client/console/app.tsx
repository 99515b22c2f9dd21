import { useQuery } from '@tanstack/react-query';
import { useRoute } from 'wouter';
import { trpc } from './api.ts';
import { Failure } from './components/failure.tsx';
import { Splash } from './components/splash.tsx';
import { InvitationPage } from './pages/invitation.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { MeContext } from './current-user.ts';
import { signedOut } from './session.ts';
import { Shell } from './shell.tsx';

/**
 * The console, or what stands before it. Who loses his session while at work signs in over the page that he is on: it
 * stays as it is beneath, with all that was typed.
 */
export function App() {
  const [isInvitation] = useRoute('/invitation');
  return isInvitation ? <InvitationPage /> : <SignedIn />;
}

function SignedIn() {
  const me = useQuery(trpc.users.me.queryOptions());
  const reason = signedOut.use();
  if (me.data) {
    return (
      <MeContext value={me.data}>
        <div inert={reason !== null}>
          <Shell />
        </div>
        {reason !== null && <SignInPage reason={reason} over formerly={me.data} />}
      </MeContext>
    );
  }
  if (reason !== null) return <SignInPage reason={reason} />;
  if (me.error) {
    return (
      <main className="splash">
        <Failure error={me.error} retry={() => void me.refetch()} />
      </main>
    );
  }
  return <Splash />;
}
