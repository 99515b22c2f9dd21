import { Alert, Button, createTheme, Drawer, Modal, Select, TextInput } from '@mantine/core';

/**
 * What Mantine lets be said in code; colours and sizes are in styles/tokens.css, because the content security policy
 * allows no style elements. For the same reason nothing here may lock scrolling by a style element of its own, and
 * SimpleGrid, Grid, Flex, AppShell and responsive style props (`p={{ sm: 4 }}`) are not for use: layout is CSS.
 */
export const theme = createTheme({
  primaryColor: 'indigo',
  defaultRadius: 'md',
  respectReducedMotion: true,
  components: {
    Alert: Alert.extend({ defaultProps: { variant: 'light' } }),
    Button: Button.extend({ defaultProps: { size: 'sm' } }),
    Modal: Modal.extend({
      defaultProps: { lockScroll: false, centered: true, closeButtonProps: { 'aria-label': 'Close' } },
    }),
    Drawer: Drawer.extend({ defaultProps: { lockScroll: false, closeButtonProps: { 'aria-label': 'Close' } } }),
    Select: Select.extend({ defaultProps: { allowDeselect: false, comboboxProps: { shadow: 'md' } } }),
    TextInput: TextInput.extend({ defaultProps: { autoComplete: 'off' } }),
  },
});
