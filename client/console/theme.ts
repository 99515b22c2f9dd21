import { Alert, Button, createTheme, Drawer, Input, Modal, Select, TextInput } from '@mantine/core';

/**
 * Component defaults. Colours and sizes live in styles/tokens.css, because the content security policy forbids style
 * elements. The same policy rules out scroll locking, SimpleGrid, Grid, Flex, AppShell and responsive style props
 * (`p={{ sm: 4 }}`), all of which inject style elements: layout is CSS.
 */
export const theme = createTheme({
  primaryColor: 'indigo',
  defaultRadius: 'md',
  respectReducedMotion: true,
  components: {
    Alert: Alert.extend({ defaultProps: { variant: 'light' } }),
    Button: Button.extend({ defaultProps: { size: 'sm' } }),
    // Descriptions have different heights: above the inputs of a row, they would put these at different heights, too.
    InputWrapper: Input.Wrapper.extend({
      defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'] },
    }),
    Modal: Modal.extend({
      defaultProps: { lockScroll: false, centered: true, closeButtonProps: { 'aria-label': 'Close' } },
    }),
    Drawer: Drawer.extend({ defaultProps: { lockScroll: false, closeButtonProps: { 'aria-label': 'Close' } } }),
    Select: Select.extend({ defaultProps: { allowDeselect: false, comboboxProps: { shadow: 'md' } } }),
    TextInput: TextInput.extend({ defaultProps: { autoComplete: 'off' } }),
  },
});
