import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { App } from './app.tsx';
import { BASE_PATH } from './base-path.ts';
import { Notices } from './components/notices.tsx';
import { queryClient } from './query-client.ts';
import './styles/index.css';
import { theme } from './theme.ts';

const root = document.querySelector('#console');
if (!root) throw new Error('The element #console is missing');
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
      <QueryClientProvider client={queryClient}>
        <Router base={BASE_PATH}>
          <App />
          <Notices />
        </Router>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
